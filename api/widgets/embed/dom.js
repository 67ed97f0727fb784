/**
 * Makes an element. A property whose name has a hyphen, or that is `role` or `for`, becomes an attribute.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [properties]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role' || name === 'for') element.setAttribute(name, String(value))
    else Object.assign(element, { [name]: value })
  }
  element.append(...children)
  return element
}

/**
 * Makes a symbol of one path, which screen readers pass over.
 *
 * @param {string} path
 */
export function makeIcon(path) {
  const space = 'http://www.w3.org/2000/svg'
  const icon = document.createElementNS(space, 'svg')
  icon.setAttribute('viewBox', '0 0 24 24')
  icon.setAttribute('aria-hidden', 'true')
  const line = document.createElementNS(space, 'path')
  line.setAttribute('d', path)
  icon.append(line)
  return icon
}
