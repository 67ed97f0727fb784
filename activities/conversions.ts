import { XMLBuilder, XMLParser } from 'fast-xml-parser'
import { DateTime } from 'luxon'
import { type HTMLElement, parse } from 'node-html-parser'
import { setOwn } from '../workflows/inputs.ts'

/** What of an HTML page is wanted: the text of what a CSS selector finds, or an attribute; of the first or of all. */
export type Wanted = { selector: string; attribute?: string; all?: boolean }

/** Work for parsers, which runs in an evaluator process: none of them can be bounded in time and memory elsewhere. */
export type Conversion =
  | { kind: 'xml'; parse: string }
  | { kind: 'xml'; build: string }
  | { kind: 'html'; text: string }
  | { kind: 'html'; page: string; picks: (readonly [name: string, Wanted])[] }
  /** Epoch milliseconds, or null for a text of another form. */
  | { kind: 'date'; text: string; format: string; zone: string; locale: string }

// Texts stay texts: a post code is no number.
const XML = {
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  textNodeName: '#text',
  parseTagValue: false,
  parseAttributeValue: false,
} as const

/** Carries out a conversion. `build` is the JSON of an object. Throws for what is no such text. */
export function convert(conversion: Conversion): unknown {
  if (conversion.kind === 'xml') {
    if ('parse' in conversion) return new XMLParser(XML).parse(conversion.parse, true)
    const options = { ...XML, format: true, suppressBooleanAttributes: false }
    const value = JSON.parse(conversion.build)
    demandNames(value)
    return new XMLBuilder(options).build(value)
  }
  if (conversion.kind === 'date') {
    const { text, format, zone, locale } = conversion
    const date = DateTime.fromFormat(text, format, { zone, locale })
    return date.isValid ? date.toMillis() : null
  }
  if ('text' in conversion) return readText(conversion.text)
  const page = parse(conversion.page)
  const found: Record<string, unknown> = {}
  for (const [name, { selector, attribute, all }] of conversion.picks) {
    const read = (element: HTMLElement) =>
      attribute === undefined ? readElement(element) : (element.getAttribute(attribute) ?? null)
    const elements = all ? page.querySelectorAll(selector) : [page.querySelector(selector)]
    const values = elements.flatMap((element) => (element ? [read(element)] : []))
    setOwn(found, name, all ? values : (values[0] ?? null))
  }
  return found
}

const NAME = /^[\p{L}_:][\p{L}\p{M}\p{N}_:.\u00b7-]*$/u

/** The builder writes any key as it stands: what is no name would make no XML, or other XML than was meant. */
function demandNames(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, child] of Object.entries(value)) {
    const name = key.replace(/^[@?]/, '')
    if (!Array.isArray(value) && key !== XML.textNodeName && !NAME.test(name)) {
      throw new Error(`${JSON.stringify(key.slice(0, 100))} is no name of an element or attribute`)
    }
    demandNames(child)
  }
}

/** What one reads of a page: without scripts and styles. */
function readText(html: string): string {
  return parse(html, { blockTextElements: { pre: true, script: false, style: false } }).structuredText.trim()
}

function readElement(element: HTMLElement): string {
  const isCode = element.tagName === 'SCRIPT' || element.tagName === 'STYLE'
  return isCode ? element.rawText : readText(element.outerHTML)
}
