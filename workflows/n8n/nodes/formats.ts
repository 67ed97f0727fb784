import { isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText } from '../texts.ts'
import { fileOf } from './fileparts.ts'

/** Nodes that read and write HTML, XML and Markdown. */
export const FORMAT_MAPPERS: Record<string, NodeMapper> = {
  html: mapHtml,
  htmlExtract: mapHtml,
  xml: mapXml,
  markdown: mapMarkdown,
}

type Fields = Record<string, unknown>
const readOptions = ({ parameters }: SourceNode): Fields =>
  isObject(parameters.options) ? parameters.options : {}

function mapHtml(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, type } = node
  const { operation = type === 'html' ? 'generateHtmlTemplate' : 'extractHtmlContent' } = parameters
  if (operation === 'generateHtmlTemplate') {
    const html = parameters.html ?? ''
    const value =
      typeof html === 'string' && html.includes('{{') ? `=${html.replace(/^=/, '')}` : keepText(html)
    return mapEach('SET', { fields: [{ name: 'html', type: 'string', value }] })
  }
  if (operation === 'convertToHtmlTable') return mapTable(node)
  const isFile = parameters.sourceData === 'binary'
  const { trimValues, cleanUpText } = readOptions(node)
  const { values } = Object(parameters.extractionValues)
  const takes: Record<string, string> = { attribute: 'attribute', html: 'html', value: 'value' }
  const text = type === 'html' && node.version > 1.1 ? 'words' : 'text'
  const pick = listObjects(values).map((entry) => ({
    key: String(plainText(entry.key) ?? ''),
    selector: keepText(entry.cssSelector),
    take: takes[String(entry.returnValue ?? 'text')] ?? text,
    ...(entry.attribute ? { attribute: keepText(entry.attribute) } : {}),
    ...(entry.skipSelectors ? { skip: keepText(entry.skipSelectors) } : {}),
    list: entry.returnArray === true,
  }))
  if (pick.some(({ key }) => key === ''))
    reportMissingOption(tools.report, 'parameters.extractionValues', values)
  return mapEach('HTML', {
    operation: 'pick',
    ...(isFile
      ? { file: fileOf(parameters.dataPropertyName) }
      : { source: keepText(parameters.dataPropertyName ?? 'data') }),
    pick,
    ...(trimValues === false ? {} : { trim: trimValues === true }),
    ...(cleanUpText === true ? { clean: true } : {}),
  })
}

function mapTable(node: SourceNode): MappedNode {
  const options = readOptions(node)
  const text = (key: string) => (options[key] ? { [key]: keepText(options[key]) } : {})
  if (isTemplate(options.rowAttributes) || isTemplate(options.cellAttributes))
    throw new Error('the attributes of its rows are expressions: write the table with CODE')
  return mapAll('HTML', {
    operation: 'table',
    table: {
      ...(options.customStyling === true ? { plain: true } : {}),
      ...(options.capitalize === true ? { capitalize: true } : {}),
      ...text('caption'),
      ...text('tableAttributes'),
      ...text('headerAttributes'),
      ...text('rowAttributes'),
      ...text('cellAttributes'),
    },
  })
}

function mapXml(node: SourceNode): MappedNode {
  const { mode = 'xmlToJson', dataPropertyName = 'data' } = node.parameters
  const options = readOptions(node)
  const source = keepText(dataPropertyName)
  if (mode === 'jsonToxml') return mapEach('XML', { operation: 'write', source, options })
  return mapEach('XML', { operation: 'read', source, options })
}

function mapMarkdown(node: SourceNode): MappedNode {
  const { mode = 'htmlToMarkdown', destinationKey = 'data', html = '', markdown = '' } = node.parameters
  const options = readOptions(node)
  const into = { into: { field: keepText(destinationKey), dots: true } }
  if (mode === 'markdownToHtml')
    return mapEach('HTML', {
      operation: 'fromMarkdown',
      value: keepText(markdown) || ' ',
      options: keepTexts(options),
      ...into,
    })
  if (options.textReplace || options.lineStartEscape || options.globalEscape)
    throw new Error('it replaces text by patterns: do it with CODE')
  const names = (key: string) =>
    options[key]
      ? {
          [key]: String(plainText(options[key]))
            .split(',')
            .map((name) => name.trim()),
        }
      : {}
  const rest = Object.entries(options).filter(
    ([key, value]) => value && key !== 'ignore' && key !== 'blockElements',
  )
  const given = { ...Object.fromEntries(rest), ...names('ignore'), ...names('blockElements') }
  return mapEach('HTML', { operation: 'toMarkdown', value: keepText(html) || ' ', options: given, ...into })
}
