import { addressOf, readText } from './ask.js'
import { fill, h } from './dom.js'

/** @typedef {{ id: string, name: string, mimeType: string, bytes: number }} FileFacts */

/** The kinds that a browser shows without running anything. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const TEXT = /^(?:text\/[\w.+-]+|application\/(?:[\w.+-]+\+)?(?:json|xml))(?:;|$)/i

const MAX_TEXT = 64 * 1024
const MAX_IMAGE = 16 * 1024 * 1024

/** How many files are shown, and how many values are looked at to find them. */
const MAX_SHOWN = 20
const MAX_LOOKED = 20_000

/**
 * The files in a node's values: name, type and size with a way to download each; images are shown, and texts when somebody
 * asks for them. Null if there are none.
 * @param {string} executionId @param {...unknown} values
 */
export function showFiles(executionId, ...values) {
  const files = findFiles(values)
  if (files.length === 0) return null
  const more = files.length - MAX_SHOWN
  return h(
    'section',
    { class: 'value files', 'aria-label': 'Files' },
    h('header', null, h('h4', null, 'Files')),
    ...files.slice(0, MAX_SHOWN).map((file) => showFile(executionId, file)),
    more > 0 && h('p', { class: 'quiet' }, `${more} more`),
  )
}

/** @param {string} executionId @param {FileFacts} file */
function showFile(executionId, { id, name, mimeType, bytes }) {
  const path = `/api/executions/${executionId}/files/${encodeURIComponent(id)}`
  return h(
    'div',
    { class: 'file' },
    h('a', { href: addressOf(path), download: name }, name),
    h('span', { class: 'quiet' }, ` ${mimeType}, ${writeSize(bytes)}`),
    IMAGES.has(mimeType) && bytes <= MAX_IMAGE && showImage(path, name),
    TEXT.test(mimeType) && bytes <= MAX_TEXT && showText(path, name),
  )
}

/** @param {string} path @param {string} name */
function showImage(path, name) {
  const image = h('img', { src: addressOf(path), alt: name, loading: 'lazy' })
  image.addEventListener('error', () => image.replaceWith(h('p', { class: 'quiet' }, 'It cannot be shown.')))
  return image
}

/** @param {string} path @param {string} name */
function showText(path, name) {
  const block = h('pre', { class: 'json', tabindex: 0, 'aria-label': `Text of ${name}` })
  const details = h('details', { ontoggle: load }, h('summary', null, 'Show the text'), block)
  return details

  async function load() {
    if (!details.open || block.textContent !== '') return
    try {
      block.textContent = await readText(path)
    } catch (error) {
      fill(block, h('span', { class: 'failure' }, error instanceof Error ? error.message : String(error)))
    }
  }
}

/** @param {unknown[]} values @returns {FileFacts[]} */
function findFiles(values) {
  /** @type {Map<string, FileFacts>} */
  const found = new Map()
  const open = [...values]
  for (const value of open) {
    if (typeof value !== 'object' || value === null) continue
    const file = /** @type {{ file?: unknown }} */ (value).file
    if (isFile(file)) {
      found.set(file.id, file)
      continue
    }
    for (const child of Object.values(value)) {
      if (open.length >= MAX_LOOKED) break
      open.push(child)
    }
  }
  return [...found.values()]
}

/** @param {unknown} value @returns {value is FileFacts} */
function isFile(value) {
  const { id, name, mimeType, bytes } = /** @type {Record<string, unknown>} */ (Object(value))
  return (
    typeof id === 'string' &&
    typeof name === 'string' &&
    typeof mimeType === 'string' &&
    typeof bytes === 'number'
  )
}

/** @param {number} bytes */
function writeSize(bytes) {
  if (bytes < 1_024) return `${bytes} bytes`
  const [size, unit] = bytes < 1_024 * 1_024 ? [bytes / 1_024, 'KB'] : [bytes / 1_024 / 1_024, 'MB']
  return `${Number(size.toFixed(1))} ${unit}`
}
