import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const ROOT = new URL('../../', import.meta.url)

type Source = { file: string; text: string }

function readRoom(room: string): Source[] {
  const files = readdirSync(new URL(room, ROOT), { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ file: `${room}${file}`, text: readFileSync(new URL(`${room}${file}`, ROOT), 'utf8') }))
}

/** An `sql` template in the code; `before` and `after` are the code of its file around it. */
type Piece = { file: string; line: number; sql: string; before: string; after: string }

/** All `sql` templates of a file, including those inside others. */
function listPieces({ file, text }: Source): Piece[] {
  const starts = [...text.matchAll(/\bsql(?:<[^`]*?>)?`/g)]
  return starts.map((start) => {
    const from = start.index + start[0].length
    const end = findEnd(text, from)
    const line = text.slice(0, start.index).split('\n').length
    const before = text.slice(0, start.index)
    return { file, line, sql: text.slice(from, end - 1), before, after: text.slice(end, end + 40) }
  })
}

/** Where the template literal that begins at `from` ends. A `${}` in it may hold other template literals. */
function findEnd(text: string, from: number): number {
  const open = ['`']
  let at = from
  for (; open.length > 0 && at < text.length; at++) {
    const sign = text[at]!
    if (open.at(-1) === '`') {
      if (sign === '`') open.pop()
      else if (sign === '\\') at++
      else if (text.startsWith('${', at)) {
        open.push('{')
        at++
      }
    } else if (sign === '`' || sign === '{') open.push(sign)
    else if (sign === '}') open.pop()
  }
  return at
}

const db = readRoom('db/')
const pieces = db.flatMap(listPieces)

/** The functions of the database that write and that the code calls. */
const WRITERS = ['cancel_executions', 'clear_gate', 'erase_audit_details', 'open_gate', 'purge_audit_entries']

describe('a write goes through a door of db/change.ts', () => {
  const writes = pieces.filter(({ sql }) =>
    new RegExp(
      `\\b(insert into|update \\w+ |delete from|merge into|truncate|${WRITERS.join('\\(|')}\\()`,
    ).test(sql.replace(/\bfor (no key )?update\b|\bdo update\b/g, '')),
  )

  test('an `sql` template that writes, or has a part that does, is executed right away on the `tx` that only a door gives', () => {
    expect(writes.length).toBeGreaterThan(30)
    // A part of a statement is what a function of its file returns.
    const parts = writes.filter(({ before, after }) => /\breturn\s*$/.test(before) && /^\s*\}/.test(after))
    const makers = parts.map(({ file, before }) => {
      const name = [...before.matchAll(/^(export )?function (\w+)\(/gm)].at(-1)!
      expect([file, name[1]]).toEqual([file, undefined])
      return { file, calls: new RegExp(`\\$\\{${name[2]}\\(`) }
    })
    const wholes = pieces.filter(({ file, sql }) =>
      makers.some((maker) => maker.file === file && maker.calls.test(sql)),
    )
    expect(wholes.length).toBeGreaterThanOrEqual(parts.length)
    const outside = [...writes, ...wholes]
      .filter((piece) => !parts.includes(piece))
      .filter(({ after }) => !/^\s*\.execute\(\s*tx\s*,?\s*\)/.test(after))
    expect(outside.map(({ file, line }) => `${file}:${line}`)).toEqual([])
  })

  test('a query that writes begins with `tx`: the type for readers has no methods to write', () => {
    const queries = db.flatMap(({ file, text }) =>
      [
        ...text.matchAll(
          /(\w+)(?:\s*\.\w+\([^)]*\))?\s*\.(?:insertInto|updateTable|deleteFrom|mergeInto)\(/g,
        ),
      ].map(([, base]) => ({ file, base })),
    )
    expect(queries.length).toBeGreaterThan(20)
    expect(queries.filter(({ base }) => base !== 'tx')).toEqual([])
  })

  test('only the doors, migrations and exports create a `tx`', () => {
    const made = db.filter(({ text }) => /\b(const|let) tx\b|as (Tx|Database)\b|\.transaction\(/.test(text))
    expect(made.map(({ file }) => file).sort()).toEqual([
      'db/change.ts',
      'db/connection.ts',
      'db/executions/exportcursor.ts',
      'db/migrate.ts',
    ])
  })

  test('only the bus writes on a connection of its own: the executions that it watches', () => {
    // The bus asks its queries one after the other, by a function of its own.
    const raw =
      /(?:\.query|\bask)(?:<[^`'"]*?>)?\(\s*(?:state,\s*client,\s*)?[`'"]\s*(insert|update|delete)\b\s*(?:into|from)?\s*(\w+)/g
    const writes = db.flatMap(({ file, text }) =>
      [...text.matchAll(raw)].map(([, , table]) => `${file} ${table}`),
    )
    expect([...new Set(writes)]).toEqual(['db/bus.ts watches'])
  })

  test('there are six doors', () => {
    const doors = db.find(({ file }) => file === 'db/change.ts')!.text
    const names = [...doors.matchAll(/^export async function (\w+)/gm)].map(([, name]) => name)
    expect(names).toEqual(['change', 'changeInstance', 'changeAccount', 'noteEvent', 'record', 'write'])
  })
})

test('all SQL is in db/', () => {
  const SQL =
    /\bsql(<[^`]*?>)?`|\.(selectFrom|insertInto|updateTable|deleteFrom)\(|\.query\(\s*['"`](select|insert|update|delete|create) /
  const rooms = ['workflows/', 'activities/', 'api/', 'worker/'].flatMap(readRoom)
  expect(rooms.filter(({ text }) => SQL.test(text)).map(({ file }) => file)).toEqual([])
})
