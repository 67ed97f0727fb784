import { load } from 'cheerio'
import { convert } from 'html-to-text'
import { NodeHtmlMarkdown } from 'node-html-markdown'
import showdown from 'showdown'
import { Builder, Parser } from 'xml2js'
import { setOwn } from '../../../workflows/json.ts'
import type { FormatConversion, PageField } from '../../expressions/formats.ts'

type Picking = Extract<FormatConversion, { document: string }>
type Page = ReturnType<typeof load>
type Selection = ReturnType<Page>

/**
 * Conversions for graphs that come from n8n. They use n8n's own libraries, so that odd pages and documents give what they
 * gave there. The service's own nodes read XML by `reading/xml/`, which refuses what is not well-formed, and pages by
 * `expressions/convert.ts`; neither is changed for the sake of n8n's results.
 */

/** The fields of a page; one that is not found is left out. */
export function pickFields({ document, fields, ...tidying }: Picking): Record<string, unknown> {
  const page = load(document)
  const found: Record<string, unknown> = {}
  for (const field of fields) {
    const selected = page(field.selector)
    const take = (selection: Selection) => tidy(takeFrom(selection, field), tidying)
    const value = field.list
      ? selected.toArray().map((element) => take(page(element)) ?? null)
      : take(selected)
    if (value !== undefined) setOwn(found, field.key, value)
  }
  return found
}

function takeFrom(selection: Selection, { take, attribute = '', skip }: PageField): string | undefined {
  if (take === 'attribute') return selection.attr(attribute)
  if (take === 'html') return selection.html() || undefined
  if (take === 'text') return selection.text() || undefined
  if (take === 'value') {
    const value = selection.val()
    return Array.isArray(value) ? value.join(',') : value
  }
  const skipped = skip?.split(',').map((selector) => ({ selector: selector.trim(), format: 'skip' }))
  return convert(selection.html() || '', skipped ? { selectors: skipped } : {})
}

function tidy(
  text: string | undefined,
  { trim, clean }: Pick<Picking, 'trim' | 'clean'>,
): string | undefined {
  if (text === undefined) return undefined
  const trimmed = trim ? text.trim() : text
  if (!clean) return trimmed
  return trimmed
    .replace(/^\s+|\s+$/g, '')
    .replace(/(\r\n|\n|\r)/gm, '')
    .replace(/\s+/g, ' ')
}

/** Markdown as HTML, or HTML as Markdown. */
export function convertMarkdown(
  conversion: Extract<FormatConversion, { markdown: string } | { toMarkdown: string }>,
): string {
  if ('toMarkdown' in conversion) return NodeHtmlMarkdown.translate(conversion.toMarkdown, conversion.options)
  const converter = new showdown.Converter()
  for (const [name, value] of Object.entries(conversion.options)) converter.setOption(name, value)
  return converter.makeHtml(conversion.markdown)
}

/** Reads XML with attributes among the fields of their element, or writes it. */
export async function convertXml(
  conversion: Extract<FormatConversion, { read: string } | { write: string }>,
): Promise<unknown> {
  const { options } = conversion
  if ('write' in conversion) return new Builder(options).buildObject(JSON.parse(conversion.write))
  const safe = (name: string) => (FORBIDDEN.has(name) ? `${name}_` : name)
  const rules = { mergeAttrs: true, explicitArray: false, ...options }
  const parser = new Parser({ ...rules, tagNameProcessors: [safe], attrNameProcessors: [safe] })
  return JSON.parse(JSON.stringify(await parser.parseStringPromise(conversion.read)))
}

const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])
