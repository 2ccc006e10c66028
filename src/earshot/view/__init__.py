"""The replay: runs of a network as one page that people can look at, served here or as a file.

Start with `world`, what all protocols of a scenario share, and `runs`, what one protocol did in it; `page` and `server`
show them.
"""
