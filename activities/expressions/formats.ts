import { XMLBuilder, XMLParser } from 'fast-xml-parser'
import { DateTime } from 'luxon'
import { type HTMLElement, parse } from 'node-html-parser'
import { setOwn } from '../../workflows/json.ts'

/** What to read from a page: the text or an attribute, of the first element that is selected or of all. */
export type HtmlPick = { selector: string; attribute?: string; all?: boolean }

/** A field that is picked of a page. `words` writes the text as a person would read it. */
export type PageField = {
  key: string
  selector: string
  take: 'text' | 'words' | 'html' | 'value' | 'attribute'
  attribute?: string
  skip?: string
  list: boolean
}

/** Work for parsers. Only in an evaluator process can their time and memory be bounded. */
export type FormatConversion =
  | { kind: 'xml'; parse: string }
  | { kind: 'xml'; build: string }
  | { kind: 'html'; text: string }
  | { kind: 'html'; page: string; picks: (readonly [name: string, HtmlPick])[] }
  /** Gives epoch milliseconds, or null if the text is not in the format. */
  | { kind: 'date'; text: string; format: string; zone: string; locale: string }
  /** What of a page is picked, with jQuery's selectors: for each field a text, or a list of them. */
  | { kind: 'html'; document: string; fields: PageField[]; trim: boolean; clean: boolean }
  | { kind: 'html'; markdown: string; options: Record<string, unknown> }
  | { kind: 'html'; toMarkdown: string; options: Record<string, unknown> }
  | { kind: 'xml'; read: string; options: Record<string, unknown> }
  | { kind: 'xml'; write: string; options: Record<string, unknown> }
  /** Whether a regular expression, such as `a+b` or `/a+b/i`, is found in the text. */
  | { kind: 'search'; text: string; pattern: string }
  /** What a value lacks to fit a JSON Schema; both are JSON. Gives a Fit. */
  | { kind: 'schema'; schema: string; value: string }
  /** Where a text, which must be JSON, does not fit a JSON Schema, which is JSON. Gives a TextFit. */
  | { kind: 'schema'; schema: string; text: string }

// Strings stay strings: a postcode must not become a number.
const XML = {
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  textNodeName: '#text',
  parseTagValue: false,
  parseAttributeValue: false,
} as const

/** Carries out a conversion; `build` is the JSON of an object. Throws an Error for invalid input. */
export async function convertFormat(conversion: FormatConversion): Promise<unknown> {
  if ('document' in conversion) return (await import('../nodes/lists/pages.ts')).pickFields(conversion)
  if ('markdown' in conversion || 'toMarkdown' in conversion)
    return (await import('../nodes/lists/pages.ts')).convertMarkdown(conversion)
  if ('read' in conversion || 'write' in conversion)
    return (await import('../nodes/lists/pages.ts')).convertXml(conversion)
  if (conversion.kind === 'schema' && 'text' in conversion) {
    const { fitText } = await import('../jsonschema/texts.ts')
    return fitText(JSON.parse(conversion.schema), conversion.text)
  }
  if (conversion.kind === 'schema') {
    const { validateJson } = await import('../jsonschema/validate.ts')
    return validateJson(JSON.parse(conversion.schema), JSON.parse(conversion.value))
  }
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
  if (conversion.kind === 'search') return readPattern(conversion.pattern).test(conversion.text)
  if ('text' in conversion) return readPageText(conversion.text)
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

function readPattern(pattern: string): RegExp {
  const [, source, flags] = /^\/(.*)\/([a-z]*)$/s.exec(pattern) ?? []
  return source === undefined ? new RegExp(pattern) : new RegExp(source, flags)
}

const NAME = /^[\p{L}_:][\p{L}\p{M}\p{N}_:.\u00b7-]*$/u

/** Checks the names, as the builder writes keys unchanged: `b><c` would make invalid or unintended XML. */
function demandNames(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, child] of Object.entries(value)) {
    const name = key.replace(/^[@?]/, '')
    if (!Array.isArray(value) && key !== XML.textNodeName && !NAME.test(name)) {
      throw new Error(`${JSON.stringify(key.slice(0, 100))} is not a valid name for an element or attribute`)
    }
    demandNames(child)
  }
}

/** The text of a page as one reads it, without scripts and styles. */
function readPageText(html: string): string {
  return parse(html, { blockTextElements: { pre: true, script: false, style: false } }).structuredText.trim()
}

function readElement(element: HTMLElement): string {
  const isCode = element.tagName === 'SCRIPT' || element.tagName === 'STYLE'
  return isCode ? element.rawText : readPageText(element.outerHTML)
}
