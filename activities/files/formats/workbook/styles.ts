import { type DateKind, findBuiltIn, readFormatCode } from './formatcodes.ts'
import type { Workbook } from './parts.ts'

/** How a number is meant in a cell of a style, which is the number that its attribute `s` has. */
export type Styles = (style: number, value: number) => DateKind

/** Reads the formats of a workbook's cells. */
export async function readStyles({ styles, scan }: Workbook): Promise<Styles> {
  const codes = new Map<number, string>()
  const ids: number[] = []
  let [isOfCells, isOfFormats] = [false, false]
  if (styles !== undefined)
    await scan(styles, {
      open(name, attributes) {
        if (name === 'cellXfs') isOfCells = true
        if (name === 'numFmts') isOfFormats = true
        if (name === 'xf' && isOfCells) ids.push(Number(attributes.get('numFmtId') ?? 0))
        if (name === 'numFmt' && isOfFormats)
          codes.set(Number(attributes.get('numFmtId')), attributes.get('formatCode') ?? '')
      },
      close(name) {
        if (name === 'cellXfs') isOfCells = false
        if (name === 'numFmts') isOfFormats = false
      },
    })
  const read = new Map<number, (value: number) => DateKind>()
  return (style, value) => {
    const id = ids[style]
    if (id === undefined) return undefined
    const known = read.get(id) ?? readFormatCode(codes.get(id) ?? findBuiltIn(id) ?? '')
    read.set(id, known)
    return known(value)
  }
}
