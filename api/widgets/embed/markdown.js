import { make } from './dom.js'

/** Inline marks: code, bold, italic, a link with a text, and a bare address. */
const MARKS =
  /`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])|\[([^\]\n]{1,300})\]\((https?:\/\/[^\s()]+)\)|(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])/g

/**
 * Shows a text with a very small Markdown: paragraphs, lists, code, bold, italic and links. All of it becomes text nodes
 * of elements that are made here, so that nothing a model says is ever read as HTML.
 *
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function showMarkdown(text) {
  const shown = document.createDocumentFragment()
  for (const [at, part] of text.split(/^```[^\n]*\n?/m).entries()) {
    if (at % 2 === 1) shown.append(make('pre', {}, make('code', {}, part.replace(/\n$/, ''))))
    else shown.append(...showBlocks(part))
  }
  return shown
}

/**
 * @param {string} text
 * @returns {HTMLElement[]}
 */
function showBlocks(text) {
  /** @type {HTMLElement[]} */
  const blocks = []
  /** @type {{ list: HTMLElement, isOrdered: boolean } | undefined} */
  let open
  /** @type {HTMLElement | undefined} */
  let paragraph
  for (const line of text.split('\n')) {
    const item = /^\s{0,3}(?:[-*•]|(\d{1,3})[.)])\s+(.*)$/.exec(line)
    if (item) {
      paragraph = undefined
      const isOrdered = item[1] !== undefined
      if (open?.isOrdered !== isOrdered) {
        open = { list: isOrdered ? make('ol', { start: Number(item[1]) }) : make('ul'), isOrdered }
        blocks.push(open.list)
      }
      open.list.append(make('li', {}, ...showInline(item[2] ?? '')))
      continue
    }
    if (line.trim() === '') {
      paragraph = undefined
      open = undefined
      continue
    }
    open = undefined
    const heading = /^#{1,6}\s+(.*)$/.exec(line)
    if (paragraph && !heading) paragraph.append(make('br'), ...showInline(line))
    else {
      const inside = showInline(heading?.[1] ?? line)
      paragraph = make('p', {}, ...(heading ? [make('strong', {}, ...inside)] : inside))
      blocks.push(paragraph)
      if (heading) paragraph = undefined
    }
  }
  return blocks
}

/**
 * @param {string} text
 * @returns {(Node | string)[]}
 */
function showInline(text) {
  /** @type {(Node | string)[]} */
  const parts = []
  let from = 0
  for (const found of text.matchAll(MARKS)) {
    const [whole, code, bold, italic, label, address, bare] = found
    parts.push(text.slice(from, found.index))
    from = found.index + whole.length
    if (code !== undefined) parts.push(make('code', {}, code))
    else if (bold !== undefined) parts.push(make('strong', {}, bold))
    else if (italic !== undefined) parts.push(make('em', {}, italic))
    else parts.push(showLink(label ?? bare ?? whole, address ?? bare ?? ''))
  }
  parts.push(text.slice(from))
  return parts
}

/**
 * @param {string} label
 * @param {string} address
 */
function showLink(label, address) {
  const properties = { href: address, target: '_blank', rel: 'noopener noreferrer nofollow' }
  return make('a', properties, label)
}
