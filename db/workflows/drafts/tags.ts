import { createHash } from 'node:crypto'
import { Fault } from '../../fault.ts'
import type { WorkflowSettings } from '../settings.ts'

/** A workflow as it is shown: with its published version or, if `version` is that of its draft, with the draft. */
export type ShownWorkflow = {
  id: string
  name: string
  description: string | null
  active: boolean
  updatedAt: Date
  settings: WorkflowSettings
  version: number
  publishedVersion: number
  draftVersion: number | null
  draftBase: number | null
}

/**
 * The entity tag of what is shown of a workflow: it changes with everything that an update of it can change. That of a
 * draft stays the same when another version is published. That of the published version names the draft after a dot.
 */
export function tagWorkflow(shown: ShownWorkflow): string {
  const { id, name, description, active, version, settings, updatedAt, draftVersion } = shown
  const state = [id, name, description, active, version, settings]
  if (isDraft(shown)) return hash(['draft', ...state])
  const published = hash([...state, updatedAt])
  return draftVersion === null ? published : `${published}.${draftVersion}`
}

/**
 * Throws PRECONDITION_FAILED unless `expected`, the tags that a caller names, has that of the workflow. One who changes
 * what is published may have read it before there was this draft; one who changes the draft may have read either.
 */
export function demandTag(
  expected: string[] | undefined,
  published: ShownWorkflow,
  draft: ShownWorkflow | undefined,
  changed: 'published' | 'draft',
): void {
  if (!expected) return
  const tag = tagWorkflow(published)
  const holds =
    changed === 'published'
      ? expected.some((one) => cutDraft(one) === cutDraft(tag))
      : expected.includes(tag) || (draft !== undefined && expected.includes(tagWorkflow(draft)))
  if (holds) return
  throw new Fault('PRECONDITION_FAILED', 'The workflow has changed since you read it: read it again')
}

function isDraft({ version, publishedVersion }: ShownWorkflow): boolean {
  return version !== publishedVersion
}

function cutDraft(tag: string): string {
  return tag.split('.', 1)[0]!
}

function hash(state: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(state)).digest('base64url').slice(0, 22)
}
