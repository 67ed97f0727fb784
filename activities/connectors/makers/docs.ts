import type { Maker } from './maker.ts'

/** What the actions of Google Docs work out. */
export const DOCS_MAKERS: Record<string, Maker> = { docsText: readText }

type Part = {
  paragraph?: { elements?: { textRun?: { content?: string } }[] }
  table?: { tableRows?: { tableCells?: { content?: Part[] }[] }[] }
  tableOfContents?: { content?: Part[] }
}

/** The text of a document, with that of its tables if they are wanted. */
function readText({
  document,
  tables,
}: {
  document: { body?: { content?: Part[] } }
  tables: boolean
}): string {
  return joinParts(document.body?.content, tables)
}

function joinParts(parts: Part[] | undefined, tables: boolean): string {
  return (parts ?? [])
    .map(({ paragraph, table, tableOfContents }) => {
      if (paragraph) return (paragraph.elements ?? []).map(({ textRun }) => textRun?.content ?? '').join('')
      if (!tables) return ''
      const cells = (table?.tableRows ?? []).flatMap(({ tableCells }) => tableCells ?? [])
      return [...cells, tableOfContents ?? {}].map(({ content }) => joinParts(content, tables)).join('')
    })
    .join('')
}
