// Elements out of texts. Nothing here, or anywhere on the page, reads a text as markup.

function make(tag, attributes = {}, content = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...(Array.isArray(content) ? content : [content]).filter((one) => one !== null && one !== undefined));
  return element;
}

function fill(element, content) {
  element.replaceChildren(...(Array.isArray(content) ? content : [content]).filter((one) => one !== null));
}

function part(name) {
  return document.getElementById(name);
}
