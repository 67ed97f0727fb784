import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['workflows', 'db', 'activities', 'api', 'worker']
const MAX_FINDINGS = 60
const MAX_WIDTH = 125

/** Words that hide the subject of a sentence: a reader has to go back and look for who or what is meant. */
const WORDS = /\b(?:nobody|somebody|whoever|stands|is none|any more)\b/i

/** How a sentence must not begin: its subject would follow after a clause. */
const BEGINNINGS = /(?:^|[.!?;:] )(?:What (?:is|are|was|were|of)|So (?:much|many|long)|Of)\b/

/** `line`: of the first character, from 1. `text`: all lines as one, without stars and slashes. */
type Comment = { line: number; text: string; lines: string[] }

const countLines = (text: string) => text.split('\n').length

/** The comments of TypeScript and JavaScript, as the parser finds them: not those within strings. */
function readScript(file: string, text: string): Comment[] {
  const { comments, errors } = parseSync(file, text)
  expect(errors, file).toEqual([])
  return joinLines(
    comments.map(({ start, end }) => ({
      line: countLines(text.slice(0, start)),
      text: text.slice(start, end),
    })),
  )
}

/** The comments of CSS and SQL. A `--` in a string of SQL would be taken for one: no file has any. */
function readOthers(text: string, isSql: boolean): Comment[] {
  const pattern = isSql ? /--.*|\/\*[\s\S]*?\*\//g : /\/\*[\s\S]*?\*\//g
  return joinLines(
    [...text.matchAll(pattern)].map((found) => ({
      line: countLines(text.slice(0, found.index)),
      text: found[0],
    })),
  )
}

/** Comments of one line that follow each other are one comment. */
function joinLines(found: { line: number; text: string }[]): Comment[] {
  const comments: Comment[] = []
  for (const { line, text } of found) {
    const lines = text.split('\n')
    const last = comments.at(-1)
    const single = !text.startsWith('/*')
    if (single && last && !last.lines[0]!.startsWith('/*') && last.line + last.lines.length === line) {
      last.lines.push(text)
    } else comments.push({ line, text: '', lines })
  }
  const strip = (line: string) =>
    line.replace(/^\s*(?:\/\*+|\*(?!\/)|\/\/|--)?\s*/, '').replace(/\s*\*\/$/, '')
  return comments.map((comment) => ({ ...comment, text: comment.lines.map(strip).join(' ').trim() }))
}

/** Why a comment does not read at once; empty if it does. */
function judgeComment({ text }: Comment): string[] {
  return [WORDS, BEGINNINGS].flatMap((pattern) => pattern.exec(text)?.[0] ?? [])
}

/** Whether a file may have a finding, so that only some files need to be parsed. */
function isSuspect(text: string, lines: string[]): boolean {
  const joined = text.replace(/\n\s*(?:\*|\/\/|--)?\s*/g, ' ')
  return (
    WORDS.test(joined) || /\b(?:What|So|Of)\b/.test(joined) || lines.some(({ length }) => length > MAX_WIDTH)
  )
}

async function findComments(file: string): Promise<string[]> {
  const text = await readFile(join(ROOT, file), 'utf8')
  const all = text.split('\n')
  if (!isSuspect(text, all)) return []
  const comments = /\.(?:css|sql)$/.test(file)
    ? readOthers(text, file.endsWith('.sql'))
    : readScript(file, text)
  return comments.flatMap((comment) => {
    const wide = comment.lines.some((_, at) => all[comment.line - 1 + at]!.length > MAX_WIDTH)
    const faults = [...judgeComment(comment), ...(wide ? [`more than ${MAX_WIDTH} characters`] : [])]
    return faults.length ? [`${file}:${comment.line} (${faults.join(', ')}) ${comment.text}`] : []
  })
}

test(`at most ${MAX_FINDINGS} comments of the product hide who does what`, async () => {
  const entries = await Promise.all(
    ROOMS.map(async (room) =>
      (await readdir(join(ROOT, room), { recursive: true })).map(
        (entry) => `${room}/${entry.split(sep).join('/')}`,
      ),
    ),
  )
  const files = entries
    .flat()
    .filter(
      (file) => /\.(?:tsx?|js|css|sql)$/.test(file) && !/^(db\/migrations|api\/console\/dist)\//.test(file),
    )
  expect(files.length).toBeGreaterThan(1000)
  const found = (await Promise.all(files.map(findComments))).flat()
  const told = found.length > MAX_FINDINGS ? found.join('\n') : ''
  expect(told, `${found.length} comments, of which ${MAX_FINDINGS} may stay:\n${told}`).toBe('')
})
