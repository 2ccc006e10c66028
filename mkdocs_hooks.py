"""Fills the command line's reference page from the commands' own help."""

from __future__ import annotations

from typing import Any

import click

from earshot.cli import earshot


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page: the one about the command line gets every command's help."""
    if page.file.src_uri != "reference/commands.md":
        return markdown
    with click.Context(earshot, info_name="earshot", terminal_width=100, max_content_width=100) as context:
        sections = [markdown, _help("earshot", earshot, context)]
        for name in earshot.list_commands(context):
            command = earshot.get_command(context, name)
            assert command is not None
            with click.Context(command, context, name, terminal_width=100, max_content_width=100) as inner:
                sections.append(_help(f"earshot {name}", command, inner))
    return "\n\n".join(sections)


def _help(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context)}\n```"
