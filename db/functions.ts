import { sql } from 'kysely'
import type { Db } from './connection.ts'

const HEAD = `-- All functions and triggers of the database as they are after the last migration, by what they are about (NOUNS in
-- db/functions.ts). Made by \`npm run schema\`, compared by \`npm run check\`: change them by a new migration, never here.
`

/** What the functions are about, each in the order in which they are to be read: a function before the steps that it calls. */
const NOUNS: Record<string, string> = {
  'People and their rights': 'hold_team hold_right doubt_email',
  'Changes of what processes have in memory':
    'tell_change tell_rights tell_instance_rights tell_plan tell_workflow',
  Workflows: 'queue_schedules keep_notes keep_drafts note_draft_base disable_widget',
  'The places of a workflow with a limit': 'hold_gate open_gate clear_gate',
  'The end of an execution': `execution_ending execution_ended make_callback_due tell_parent end_children
    queue_error_workflow abandon_pauses end_reply sample_run sample_of execution_deleted`,
  'Cancelling executions': 'cancel_executions cancel_run',
  'What executions do not keep': 'is_awaited wipe_unkept wipe_outputs leave_answer leave_reply',
  'Those who watch an execution': 'tell_run tell_execution tell_node tell_answer',
  'Counts of executions': 'count_executions forget_execution_counts',
  'Hours of executions': `execution_hour_changed execution_hour_deleted add_execution_hour is_counted
    duration_bounds duration_bucket count_durations add_durations forget_execution_hours`,
  'Hours of model calls': 'model_call_changed unfold_model_calls sum_model_call_hours',
  Errands: 'own_errand tell_errand',
  Files: 'count_file_copies count_file_bytes',
  Chat: 'drop_chunks purge_session',
  'Audit entries': `audit_is_append_only audit_keeps_entries audit_anchor_holds purge_audit_entries
    audit_erasure_is_named erase_audit_details`,
}

type Described = { name: string; definition: string; comment: string | null; triggers: string[] }

/**
 * The content of db/functions.sql: a section for each of NOUNS, with its functions, each with its comment and followed by
 * the triggers that call it. Throws if NOUNS names others than there are.
 */
export async function describeFunctions(db: Db): Promise<string> {
  const { rows } = await sql<Described>`
    select p.proname::text as name, pg_get_functiondef(p.oid) as definition,
      obj_description(p.oid, 'pg_proc') as comment,
      array(select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgfoid = p.oid and not t.tgisinternal
        order by t.tgrelid::regclass::text, t.tgname) as triggers
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'public'
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by p.oid`.execute(db)
  const found = Map.groupBy(rows, ({ name }) => name)
  const named = Object.values(NOUNS).flatMap(splitNames)
  const faults = [
    ...named.filter((name) => !found.has(name)),
    ...[...found.keys()].filter((name) => !named.includes(name)),
  ]
  if (faults.length > 0) throw new Error(`NOUNS in db/functions.ts is wrong about ${faults.join(', ')}`)
  const sections = Object.entries(NOUNS).flatMap(([noun, names]) => [
    `-- ${noun.toUpperCase()}\n`,
    ...splitNames(names).flatMap((name) => found.get(name)!.map(writeFunction)),
  ])
  return [HEAD, ...sections].join('\n')
}

const splitNames = (names: string) => names.split(/\s+/)

function writeFunction({ definition, comment, triggers }: Described): string {
  const words = comment === null ? '' : `${comment.replace(/^/gm, '-- ')}\n`
  return `${words}${definition.trim()};\n${triggers.map(writeTrigger).join('')}`
}

function writeTrigger(definition: string): string {
  return `\n${definition.replaceAll(' public.', ' ').replace(/ (?=WHEN|EXECUTE)/g, '\n  ')};\n`
}
