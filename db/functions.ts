import { sql } from 'kysely'
import type { Db } from './connection.ts'

const HEAD = `-- All functions and triggers of the database as they are after the last migration. Made by \`npm run schema\`, compared
-- by \`npm run check\`: change them by a new migration, never here.
`

/**
 * The content of db/functions.sql: every function with its comment, then every trigger (of a table), by name.
 */
export async function describeFunctions(db: Db): Promise<string> {
  const functions = await sql<{ definition: string; comment: string | null }>`
    select pg_get_functiondef(p.oid) as definition, obj_description(p.oid, 'pg_proc') as comment
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'public'
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by p.proname, p.oid`.execute(db)
  const triggers = await sql<{ definition: string }>`
    select pg_get_triggerdef(t.oid) as definition
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and not t.tgisinternal order by c.relname, t.tgname`.execute(db)
  return [
    HEAD,
    ...functions.rows.map(({ definition, comment }) => `${quote(comment)}${definition.trim()};\n`),
    triggers.rows.map(({ definition }) => `${definition.replaceAll(' public.', ' ')};\n`).join(''),
  ].join('\n')
}

function quote(comment: string | null): string {
  return comment === null ? '' : `${comment.replace(/^/gm, '-- ')}\n`
}
