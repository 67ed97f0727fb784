import { sql } from 'kysely'
import { write } from '../change.ts'
import { inLine } from '../operation/lines.ts'
import type { Store } from '../scope.ts'

/** What a call may cost, in the month of its beginning. */
export type Reservation = { teamId: string; month: string; cost: number }

/**
 * Takes what a call can cost at most from what the team's guardrails may still spend this month, in US dollars. However
 * many ask at once, in any number of processes, the cap holds for all of them together. Undefined if it is reached. A
 * process that dies leaves its reservations as spent.
 */
export async function reserveSpending(
  store: Pick<Store, 'db'>,
  { teamId, cap, cost }: { teamId: string; cap: number; cost: number },
): Promise<Reservation | undefined> {
  const { rows } = await inTurn(store, teamId, () =>
    write(store, (tx) =>
      sql<{ month: string }>`
      insert into guardrail_spending as s (team_id, month, cost)
      select ${teamId}, date_trunc('month', now() at time zone 'UTC')::date, ${cost}::numeric
      where ${cost}::numeric <= ${cap}::numeric
      on conflict (team_id, month) do update set cost = s.cost + excluded.cost
        where s.cost + excluded.cost <= ${cap}::numeric
      returning month::text as month`.execute(tx),
    ),
  )
  return rows[0] && { teamId, month: rows[0].month, cost }
}

/** Puts what a call has cost in the place of what was reserved for it. */
export async function settleSpending(
  store: Pick<Store, 'db'>,
  { teamId, month, cost }: Reservation,
  spent: number,
): Promise<void> {
  if (spent === cost) return
  await inTurn(store, teamId, () =>
    write(store, (tx) =>
      sql`update guardrail_spending set cost = greatest(0, cost - ${cost}::numeric + ${spent}::numeric)
        where team_id = ${teamId} and month = ${month}::date`.execute(tx),
    ),
  )
}

/** Calls of one team would only wait for each other's row, each with a connection. */
const inTurn = <T>({ db }: Pick<Store, 'db'>, teamId: string, work: () => Promise<T>) =>
  inLine(db, `${teamId} guardrail spending`, 1, work)
