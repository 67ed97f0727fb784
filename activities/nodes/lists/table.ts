import { getOwn, isObject } from '../../../workflows/json.ts'
import type { HtmlTable } from '../../../workflows/nodes/documents.ts'

const TABLE = "style='border-spacing:0; font-family:helvetica,arial,sans-serif'"
const CELL = "style='margin:0; padding:7px 20px 7px 0px; border-bottom:1px solid #eee"
const HEAD = `${CELL}; text-align:left; color:#888; font-weight:normal'`

/** The items as a table in HTML, with a column for each field that any of them has. Values are not escaped. */
export function writeTable(items: unknown[], table: HtmlTable): string {
  const names = [...new Set(items.flatMap((item) => Object.keys(Object(item))))]
  const style = (text: string) => (table.plain ? '' : text)
  const heads = names.map((name) => `<th>${table.capitalize ? capitalize(name) : name}</th>`).join('')
  const rows = items.map((item) => {
    const cells = names.map((name) => {
      return `<td ${style(`${CELL}'`)} ${table.cellAttributes ?? ''}>${writeCell(item, name)}</td>`
    })
    return `<tr  ${table.rowAttributes ?? ''}>${cells.join('')}</tr>`
  })
  const caption = table.caption ? `<caption>${table.caption}</caption>` : ''
  const head = `<thead ${style(HEAD)} ${table.headerAttributes ?? ''}><tr>${heads}</tr></thead>`
  return `<table ${style(TABLE)} ${table.tableAttributes ?? ''}>${caption}${head}<tbody>${rows.join('')}</tbody></table>`
}

function capitalize(name: string): string {
  const words = name.split('_').filter((word) => word !== '')
  return words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join(' ')
}

function writeCell(item: unknown, name: string): string {
  const value = isObject(item) ? getOwn(item, name) : undefined
  if (typeof value !== 'boolean') return String(value)
  return `<input type="checkbox" ${value ? 'checked="checked"' : ''}/>`
}
