import type { Rules } from '../../workflows/expressions/rules.ts'
import type { Store } from '../scope.ts'

type Person = { id: string; name: string }

/**
 * A version of a workflow's graph. `current`: it is the published one. `draft`: it is the draft. `published`: it is or was
 * the published one, since `publishedAt`, with a `note`. `inUse`: it has executions. `restoredFrom`: the version it
 * restored. `expressions`: the rules of its expressions; `strict`: the setting that is kept with it.
 */
export type VersionItem = {
  version: number
  createdAt: Date
  createdBy: Person | null
  nodeCount: number
  current: boolean
  draft: boolean
  published: boolean
  publishedAt: Date | null
  publishedBy: Person | null
  note: string | null
  inUse: boolean
  restoredFrom: number | null
  expressions: Rules
  strict: boolean
}

/** Selects a workflow's versions as a list shows them. */
export function selectVersions(store: Store, workflowId: string) {
  return store.db
    .selectFrom('workflowVersions as v')
    .innerJoin('workflows as w', 'w.id', 'v.workflowId')
    .leftJoin('users as u', 'u.id', 'v.createdBy')
    .leftJoin('users as p', 'p.id', 'v.publishedBy')
    .select(['v.version', 'v.createdAt', 'v.nodeCount', 'v.restoredFrom', 'v.expressions', 'v.strict'])
    .select(['v.draft', 'v.publishedAt', 'v.note', 'w.version as currentVersion', 'w.draftVersion'])
    .select(['u.id as userId', 'u.firstName', 'u.lastName'])
    .select(['p.id as publisherId', 'p.firstName as publisherFirst', 'p.lastName as publisherLast'])
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('executions as e')
            .select('e.id')
            .whereRef('e.workflowId', '=', 'v.workflowId')
            .whereRef('e.workflowVersion', '=', 'v.version'),
        )
        .as('inUse'),
    )
    .where('v.workflowId', '=', workflowId)
}

/** A row of selectVersions as a list shows it. What was published when it was saved has no other time or publisher. */
export function describeVersion(
  row: Awaited<ReturnType<ReturnType<typeof selectVersions>['executeTakeFirstOrThrow']>>,
): VersionItem {
  const { version, createdAt, nodeCount, restoredFrom, expressions, strict, note } = row
  const createdBy = namePerson(row.userId, row.firstName, row.lastName)
  const publishedBy = namePerson(row.publisherId, row.publisherFirst, row.publisherLast)
  const published = !row.draft
  const isLater = row.publishedAt !== null
  return {
    version,
    createdAt,
    createdBy,
    nodeCount,
    current: version === row.currentVersion,
    draft: version === row.draftVersion,
    published,
    publishedAt: published ? (row.publishedAt ?? createdAt) : null,
    publishedBy: published ? (isLater ? publishedBy : createdBy) : null,
    note,
    inUse: row.inUse === true,
    restoredFrom,
    expressions: expressions as Rules,
    strict,
  }
}

function namePerson(id: string | null, firstName: string | null, lastName: string | null): Person | null {
  return id === null ? null : { id, name: `${firstName} ${lastName}` }
}
