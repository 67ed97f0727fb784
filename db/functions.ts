import { sql } from 'kysely'
import type { Db } from './connection.ts'

const HEAD = `-- All functions and triggers of the database as they are after the last migration. Made by \`npm run schema\`, compared
-- by \`npm run check\`: change them by a new migration, never here.
`

/**
 * The content of db/functions.sql: a section for each table, with the functions that only its triggers call and then its
 * triggers, and a last one for the functions that triggers of several tables, other functions or the service call. Each
 * function has its comment.
 */
export async function describeFunctions(db: Db): Promise<string> {
  const functions = await sql<{ definition: string; comment: string | null; tables: string[] }>`
    select pg_get_functiondef(p.oid) as definition, obj_description(p.oid, 'pg_proc') as comment,
      array(select distinct c.relname::text from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where t.tgfoid = p.oid and not t.tgisinternal) as tables
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'public'
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by p.proname, p.oid`.execute(db)
  const triggers = await sql<{ definition: string; table: string }>`
    select pg_get_triggerdef(t.oid) as definition, c.relname as table
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and not t.tgisinternal order by c.relname, t.tgname`.execute(db)
  const nameTable = ({ tables }: { tables: string[] }) => (tables.length === 1 ? tables[0]! : '')
  const ofTable = Map.groupBy(functions.rows, nameTable)
  const sections = [...Map.groupBy(triggers.rows, ({ table }) => table)].map(([table, own]) => [
    `-- ${table}\n`,
    ...(ofTable.get(table) ?? []).map(writeFunction),
    own.map(({ definition }) => `${definition.replaceAll(' public.', ' ')};\n`).join(''),
  ])
  return [
    HEAD,
    ...sections.flat(),
    '-- Functions of more than one table\n',
    ...(ofTable.get('') ?? []).map(writeFunction),
  ].join('\n')
}

function writeFunction({ definition, comment }: { definition: string; comment: string | null }): string {
  const words = comment === null ? '' : `${comment.replace(/^/gm, '-- ')}\n`
  return `${words}${definition.trim()};\n`
}
