import { change } from '../change.ts'
import type { Db } from '../connection.ts'
import { demandTeam, type Scope } from '../scope.ts'

/** The dimensions that every team has. */
export const BUILT_IN_DIMENSIONS = ['groundedness', 'relevance', 'safety'] as const

/** A dimension of a team's own, with what each score means. */
export type TeamDimension = { name: string; rubric: string }

/** The own dimensions of a team in their order (VIEWER). Throws NOT_FOUND. */
export async function readDimensions(scope: Scope, teamId: string): Promise<TeamDimension[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  return loadDimensions(scope.store.db, teamId)
}

/** Replaces the own dimensions of a team (ADMIN). They count for what is judged from now on. */
export async function updateDimensions(
  scope: Scope,
  teamId: string,
  dimensions: TeamDimension[],
): Promise<TeamDimension[]> {
  return change(scope, 'EVAL_DIMENSIONS_UPDATED', teamId, async (tx) => {
    const before = await loadDimensions(tx, teamId)
    if (JSON.stringify(before) === JSON.stringify(dimensions)) return { result: before, unchanged: true }
    await tx.deleteFrom('evalDimensions').where('teamId', '=', teamId).execute()
    const rows = dimensions.map(({ name, rubric }, position) => ({ teamId, name, rubric, position }))
    if (rows.length > 0) await tx.insertInto('evalDimensions').values(rows).execute()
    const names = (list: TeamDimension[]) => list.map(({ name }) => name)
    return {
      result: dimensions,
      resourceId: teamId,
      details: { before: { names: names(before) }, after: { names: names(dimensions) } },
    }
  })
}

/** The same for the service itself: it checks no right. */
export async function loadDimensions(db: Db, teamId: string): Promise<TeamDimension[]> {
  return db
    .selectFrom('evalDimensions')
    .select(['name', 'rubric'])
    .where('teamId', '=', teamId)
    .orderBy('position')
    .execute()
}
