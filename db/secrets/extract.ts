import { sql } from 'kysely'
import type { Problem } from '../../workflows/problem.ts'
import { change } from '../change.ts'
import type { Tx } from '../connection.ts'
import { readOwner } from '../owners.ts'
import type { Scope } from '../scope.ts'
import { lockVersions } from '../workflows/drafts/locked.ts'
import { addVersion, type StoredVersion } from '../workflows/versions.ts'
import { auditMoved, type MovedSecret } from './keeping.ts'
import { type MoveOptions, moveSecrets } from './moves.ts'

/**
 * The result of moving the secrets of a workflow's graphs: `version` and `draftVersion` are the new ones, or those that
 * have none to move.
 */
export type Extraction = {
  workflowId: string
  version: number
  draftVersion: number | null
  credentials: MovedSecret[]
  /** The secrets that are still in the graph or, with `draft.` before their path, in the draft only, and why. */
  problems: Problem[]
}

/**
 * Moves the secrets that are written into a workflow's published graph, and into that of its draft, into credentials,
 * which makes a new version of each that has any (BUILDER). With `dryRun` it only says what it would do. Throws
 * NOT_FOUND, and CONFLICT if the team would have too many credentials.
 */
export async function extractCredentials(
  scope: Scope,
  workflowId: string,
  { dryRun = false }: { dryRun?: boolean } = {},
): Promise<Extraction> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  return change(scope, 'CREDENTIALS_EXTRACTED', teamId, async (tx) => {
    const { store, published, draft, next } = await lockVersions(scope.store, tx, workflowId)
    const { name, version, draftVersion, draftBase } = published.shown
    const found = new Map<string, MovedSecret>()
    const options = { teamId, name, requests: true, dryRun, found }
    const move = (stored: StoredVersion) => moveOf(tx, store, stored, options)
    const live = await move(published.stored)
    const tried = draft && (await move(draft.stored))
    const credentials = [...found.values()].map((one) => ({ ...one, paths: [...new Set(one.paths)] }))
    const known = new Set(live.left.map(({ path }) => path))
    const ofDraft = tried?.left.filter(({ path }) => !known.has(path)) ?? []
    const problems = [
      ...live.left,
      ...ofDraft.map(({ path, message }) => ({ path: `draft.${path}`, message })),
    ]
    const result = { workflowId, version, draftVersion, credentials, problems }
    if (dryRun || !(live.changed || tried?.changed)) return { result, unchanged: true }
    const newVersion = live.changed ? next : version
    const newDraft = tried?.changed ? next + (live.changed ? 1 : 0) : draftVersion
    const workflow = { id: workflowId, teamId }
    if (live.changed) {
      const next = { ...published.stored, graph: live.graph }
      await addVersion(tx, workflow, newVersion, next, scope.userId, { from: version })
    }
    if (draft && tried?.changed) {
      const next = { ...draft.stored, graph: tried.graph }
      const origin = { from: draft.shown.version, draft: true }
      await addVersion(tx, workflow, newDraft!, next, scope.userId, origin)
    }
    await tx
      .updateTable('workflows')
      .set({ version: newVersion, draftVersion: newDraft })
      .$if(live.changed, (query) => query.set({ updatedAt: sql<Date>`now()` }))
      // The draft began with the same graph.
      .$if(draftBase === version, (query) => query.set({ draftBase: newVersion }))
      .$if(tried?.changed === true, (query) => query.set({ lastDraft: newDraft }))
      .where('id', '=', workflowId)
      .execute()
    return {
      result: { ...result, version: newVersion, draftVersion: newDraft },
      resourceId: workflowId,
      details: {
        ...{ name, version: newVersion, made: credentials.length, left: problems.length },
        ...(newDraft === draftVersion ? {} : { draft: newDraft }),
      },
      also: auditMoved(credentials, workflowId),
    }
  })
}

async function moveOf(
  tx: Tx,
  store: Scope['store'],
  { graph }: StoredVersion,
  options: MoveOptions,
): Promise<{ graph: StoredVersion['graph']; left: Problem[]; changed: boolean }> {
  const moved = await moveSecrets(tx, store, graph, { ...options, known: graph.nodes })
  const changed = moved.graph.nodes.some((node, at) => node !== graph.nodes[at])
  return { graph: moved.graph, left: moved.left, changed }
}
