import { DateTime } from 'luxon'
import { type HTMLElement, parse } from 'node-html-parser'
import { setOwn } from '../../workflows/json.ts'
import { buildXml } from '../reading/xml/build.ts'
import { parseXml } from '../reading/xml/parse.ts'
import type { FormatConversion } from './formats.ts'

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
  if (conversion.kind === 'openapi') {
    const { readOpenApi } = await import('../connectors/openapi/read.ts')
    return readOpenApi(conversion.openapi, conversion.options)
  }
  if (conversion.kind === 'xml') {
    if ('parse' in conversion) return parseXml(conversion.parse, conversion)
    return buildXml(JSON.parse(conversion.build))
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

/** The text of a page as one reads it, without scripts and styles. */
function readPageText(html: string): string {
  return parse(html, { blockTextElements: { pre: true, script: false, style: false } }).structuredText.trim()
}

function readElement(element: HTMLElement): string {
  const isCode = element.tagName === 'SCRIPT' || element.tagName === 'STYLE'
  return isCode ? element.rawText : readPageText(element.outerHTML)
}
