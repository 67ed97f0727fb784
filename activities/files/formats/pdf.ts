import { getDocumentProxy, getResolvedPDFJS } from 'unpdf'
import type { ReadItem } from '../../../workflows/nodes/formats.ts'
import { invalidConfig } from '../../nodes/kit/failure.ts'
import { excessiveFile, invalidFile } from './faults.ts'
import type { FileSource, Warn } from './work.ts'

/** The most pages of which the text is read. */
const MAX_PAGES = 2_000

/** The most characters of all pages together. */
const MAX_CHARS = 4_000_000

/** The errors of pdf.js that say what is wrong with a file; others are told in their own words. */
const FAULTS: Record<string, string> = {
  PasswordException: 'is encrypted: it can only be read with a password',
  InvalidPDFException: 'is not a PDF that can be read: it is damaged, or not complete',
}

/**
 * The text of a PDF: {text, pages, pageCount, info}, where `pages` has {page, text} of each page that was asked for
 * (`1-3,7`, or all), and `text` all of them with an empty line between. Throws a NodeFailure.
 */
export async function readPdf({ name, bytes }: FileSource, wanted: string | undefined, warn: Warn) {
  // Taken by pdf.js for itself, and of a Buffer it would take more than the file.
  const data = new Uint8Array(bytes)
  try {
    const file = await getDocumentProxy(data, { stopAtErrors: false, maxImageSize: 0, verbosity: 0 })
    const numbers = choosePages(wanted, file.numPages)
    if (numbers.length > MAX_PAGES)
      throw excessiveFile(
        name,
        `has ${numbers.length} pages; at most ${MAX_PAGES} are read at once: choose them with pages`,
      )
    const pages: { page: number; text: string }[] = []
    let chars = 0
    for (const number of numbers) {
      const page = await file.getPage(number)
      const { items } = await page.getTextContent()
      const text = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('')
      page.cleanup()
      chars += text.length
      if (chars > MAX_CHARS)
        throw excessiveFile(name, `has more than ${MAX_CHARS} characters of text: choose pages`)
      pages.push({ page: number, text: text.trim() })
    }
    const { info } = await file.getMetadata()
    const text = pages.map((page) => page.text).join('\n\n')
    if (text.trim() === '') warn('It has no text on these pages: they may be images of a scanner')
    return {
      text: text.trim(),
      pages,
      pageCount: file.numPages,
      info: chooseInfo(info as Record<string, unknown>),
    }
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'NodeFailure' || error instanceof RangeError) throw error
    throw invalidFile(
      name,
      FAULTS[error.name] ?? `is not a PDF that can be read: ${error.message.slice(0, 300)}`,
    )
  }
}

/**
 * A PDF as n8n reads it: {numpages, numrender, info, metadata, text, version}, where a line begins with each piece of
 * text at another height. `apart` gives a list of the pages' texts.
 */
export async function readPdfForItem({ name, bytes }: FileSource, { maxPages, apart }: ReadItem) {
  try {
    const file = await getDocumentProxy(new Uint8Array(bytes), { maxImageSize: 0, verbosity: 0 })
    const count = maxPages === undefined ? file.numPages : Math.min(maxPages, file.numPages)
    if (count > MAX_PAGES)
      throw excessiveFile(name, `has ${count} pages; at most ${MAX_PAGES} are read at once`)
    const pages: string[] = []
    let chars = 0
    for (let number = 1; number <= count; number++) {
      const page = await file.getPage(number)
      const text = joinLines((await page.getTextContent()).items)
      page.cleanup()
      chars += text.length
      if (chars > MAX_CHARS) throw excessiveFile(name, `has more than ${MAX_CHARS} characters of text`)
      pages.push(text)
    }
    const { info, metadata } = await file.getMetadata()
    return {
      numpages: file.numPages,
      numrender: file.numPages,
      info,
      ...(metadata ? { metadata: Object.fromEntries([...metadata]) } : {}),
      text: apart ? pages : pages.join('\n\n'),
      version: (await getResolvedPDFJS()).version,
    }
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'NodeFailure' || error instanceof RangeError) throw error
    throw invalidFile(
      name,
      FAULTS[error.name] ?? `is not a PDF that can be read: ${error.message.slice(0, 300)}`,
    )
  }
}

function joinLines(items: object[]): string {
  let height: number | undefined
  let text = ''
  for (const { str, transform } of items as { str?: string; transform?: number[] }[]) {
    if (str === undefined) continue
    text += height === undefined || height === 0 || height === transform?.[5] ? str : `\n${str}`
    height = transform?.[5]
  }
  return text
}

/** The numbers of the pages that are wanted, in the order in which they are named. */
function choosePages(wanted: string | undefined, count: number): number[] {
  if (wanted === undefined) return Array.from({ length: count }, (_, at) => at + 1)
  const numbers = new Set<number>()
  for (const part of wanted.split(',')) {
    const [first = 0, last = first] = part.split('-').map(Number)
    if (first < 1 || last < first || last > count)
      throw invalidConfig('pages', `names ${part.trim()}, but the PDF has the pages 1 to ${count}`)
    for (let number = first; number <= last; number++) numbers.add(number)
  }
  return [...numbers]
}

const INFO = {
  Title: 'title',
  Author: 'author',
  Subject: 'subject',
  Keywords: 'keywords',
  Creator: 'creator',
}

function chooseInfo(info: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(INFO).flatMap(([from, to]) =>
      typeof info[from] === 'string' ? [[to, info[from].slice(0, 1_000)]] : [],
    ),
  )
}
