/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown> | null} Props */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Makes an element. Props named on... are listeners, true is an empty attribute, false and null are none; texts
 * become text nodes: nothing a user wrote is ever read as HTML (and the page's policy forbids innerHTML).
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag)
  setProps(element, props)
  fill(element, ...children)
  return element
}

/**
 * The same for SVG.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag)
  setProps(element, props)
  element.append(...keep(children))
  return element
}

/**
 * Replaces what an element holds.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...keep(children))
}

/** @param {Child[]} children */
function keep(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return []
    return [child instanceof Node ? child : String(child)]
  })
}

/** @param {Element} element @param {Props} [props] */
function setProps(element, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value))
    else element.setAttribute(name, value === true ? '' : String(value))
  }
}

let made = 0

/** An id of its own, to tie a label or a description to its element. @param {string} name */
export function newId(name) {
  made += 1
  return `${name}-${made}`
}
