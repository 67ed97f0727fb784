import { sql } from 'kysely'
import { NO_WORKFLOW } from '../usage/calls.ts'

/** The tables of sums that a late span is added to, where they have the hour or day already. */
type Rollup = { table: string; at: 'hour' | 'day'; until: string; extra: Record<string, string> }
const ROLLUPS: Rollup[] = [
  { table: 'model_call_hours', at: 'hour', until: 'until', extra: { starts: '0', firsts: '0' } },
  { table: 'model_call_days', at: 'day', until: 'days_until', extra: { starts: '0', firsts: '0' } },
  {
    table: 'model_call_node_hours',
    at: 'hour',
    until: 'nodes_until',
    extra: { node_id: "'telemetry'", open: '0' },
  },
  { table: 'model_call_node_days', at: 'day', until: 'days_until', extra: { node_id: "'telemetry'" } },
]
const SUMMED = ['calls', 'unpriced', 'priced', 'input', 'output', 'cached', 'reasoning', 'cost'] as const

/** Adds what `late` has to a table of sums, as a part of a statement that has `folds` too. */
function addLate(teamId: string, { table, at, until, extra }: Rollup) {
  const time = sql`date_trunc(${sql.lit(at)}, hour, 'UTC')`
  const more = Object.entries(extra)
  const names = more.map(([name]) => sql.ref(name))
  const keys = ['team_id', at, 'workflow_id', ...(extra.node_id ? ['node_id'] : []), 'provider', 'model']
  const sums = SUMMED.map((name) => sql.ref(name))
  return sql`${sql.ref(`to_${table}`)} as (
      insert into ${sql.table(table)} as h (team_id, ${sql.ref(at)}, workflow_id, provider, model, ${sql.join(sums)},
        ${sql.join(names)})
      select ${teamId}::uuid, ${time}, ${NO_WORKFLOW}::uuid, provider, model,
        ${sql.join(sums.map((name) => sql`sum(${name})`))}, ${sql.join(more.map(([, value]) => sql.raw(value)))}
      from late where ${time} < (select ${sql.ref(until)} from folds)
      group by ${time}, provider, model order by ${time}, provider, model
      on conflict (${sql.join(keys.map((key) => sql.ref(key)))}) do update set
        ${sql.join(sums.map((name) => sql`${name} = h.${name} + excluded.${name}`))}
    )`
}

/**
 * Parts of a statement that has `late` (sums of calls by hour, provider and model) and `folds`: they add the calls to all
 * sums of hours and days that are folded already.
 */
export function addLateCalls(teamId: string) {
  return sql.join(ROLLUPS.map((rollup) => addLate(teamId, rollup)))
}
