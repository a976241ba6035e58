// The only maker of elements. What it is given as text gets into the page as text nodes
// and as a few plain attributes, with everything invisible made visible; nothing here
// takes markup.

import { visible } from "/assets/text.js";

const SVG = "http://www.w3.org/2000/svg";
const PLAIN = new Set([
  "class", "id", "title", "type", "for", "name", "value", "placeholder", "role", "lang",
  "rows", "maxlength", "min", "max", "step", "tabindex", "colspan", "scope", "datetime",
  "autocomplete", "spellcheck", "download", "disabled", "hidden", "open", "checked",
  "selected", "method", "dir", "inputmode", "alt",
]);

/** An element; `props` are attributes, `on` listeners, `data` data attributes. */
export function h(tag, props, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(made, name, value);
  put(made, children);
  return made;
}

function set(made, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
  } else if (name === "data") {
    for (const [key, text] of Object.entries(value)) made.dataset[key] = text;
  } else if (name === "href" || name === "src") {
    // A backslash is a slash for a browser, and white space is nothing to it.
    if (!/^[/#](?![/\\])[!-[\]-~]*$/.test(value)) throw new Error(`a link leads elsewhere: ${value}`);
    made.setAttribute(name, value);
  } else if (PLAIN.has(name) || name.startsWith("aria-")) {
    made.setAttribute(name, value === true ? "" : visible(String(value)));
  } else {
    throw new Error(`there is no such attribute here: ${name}`);
  }
}

function put(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
}

/** An element with exactly these children from now on. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  put(parent, children);
  return parent;
}

/** A part of a drawing; names and numbers of ours, texts made visible. */
export function s(tag, props, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (/^(on|href|xlink|style)/i.test(name)) {
      throw new Error(`there is no such attribute here: ${name}`);
    } else {
      made.setAttribute(name, visible(String(value)));
    }
  }
  put(made, children);
  return made;
}

const FOCUSABLE = "a[href],button,input,select,textarea,[tabindex]";

/**
 * Have `parent` show `items` in this order. An element whose item is the same stays, so
 * that nothing is lost that somebody looks at, points to or types into.
 */
export function keyed(parent, items, keyOf, render) {
  const known = new Map();
  for (const node of [...parent.children]) known.set(node.dataset.key, node);
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    const signature = JSON.stringify(item);
    let node = known.get(key);
    known.delete(key);
    if (node === undefined || node.signature !== signature) {
      const fresh = render(item);
      fresh.dataset.key = key;
      fresh.signature = signature;
      if (node === undefined) {
        parent.insertBefore(fresh, next);
      } else {
        if (node === next) next = node.nextElementSibling;
        replace(node, fresh, () => parent.insertBefore(fresh, next));
      }
      node = fresh;
    } else if (node === next) {
      next = next.nextElementSibling;
    } else {
      parent.insertBefore(node, next);
    }
  }
  for (const node of known.values()) node.remove();
}

function replace(old, fresh, insert = () => old.before(fresh)) {
  const held = document.activeElement;
  const place = old.contains(held)
    ? [old, ...old.querySelectorAll(FOCUSABLE)].indexOf(held)
    : -1;
  insert();
  old.remove();
  if (place >= 0) [fresh, ...fresh.querySelectorAll(FOCUSABLE)][place]?.focus();
}

/** One element that is made anew only when what it shows has changed. */
export function part(parent, key, value, render) {
  const node = [...parent.children].find((each) => each.dataset.key === key);
  const signature = JSON.stringify(value ?? null);
  if (node !== undefined && node.signature === signature) return node;
  const fresh = render(value);
  fresh.dataset.key = key;
  fresh.signature = signature;
  if (node === undefined) parent.append(fresh);
  else replace(node, fresh);
  return fresh;
}
