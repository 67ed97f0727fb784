import type { Workbook } from './parts.ts'

/** The texts that the cells of a workbook share. */
export async function readStrings({ strings, scan }: Workbook): Promise<string[]> {
  const all: string[] = []
  if (strings === undefined) return all
  const text = collectText()
  await scan(strings, {
    open(name) {
      if (name === 'si') text.clear()
      text.open(name)
    },
    close(name) {
      text.close(name)
      if (name === 'si') all.push(text.read())
    },
    text: text.add,
  })
  return all
}

/** Puts the runs of a text together, without what says how it is spoken (`rPh`). */
export function collectText() {
  let whole = ''
  let isText = false
  let spoken = 0
  return {
    clear(): void {
      whole = ''
    },
    open(name: string): void {
      if (name === 'rPh') spoken++
      if (name === 't') isText = spoken === 0
    },
    close(name: string): void {
      if (name === 'rPh') spoken--
      if (name === 't') isText = false
    },
    add(text: string): void {
      if (isText) whole += text
    },
    read: (): string => unescapeText(whole),
  }
}

/** What XML cannot have, or would change, is written as `_x000D_`. */
export function unescapeText(text: string): string {
  return text.replace(/_x([\dA-Fa-f]{4})_/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}
