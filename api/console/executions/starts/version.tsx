import { useState } from 'react'
import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { useRole } from '../../shell/role.tsx'
import { useWorkflow } from '../../workflows/data.ts'
import type { Run } from '../live.ts'

export type Version = 'current' | 'same'
type Choice = Version | 'draft'

type VersionProps<V extends Choice> = {
  value: V
  onChange: (version: V) => void
  /** The version of the execution that is repeated; undefined of several. */
  same: number | undefined
  /** The workflow's published version; undefined of several. */
  current: number | undefined
  /** The workflow's draft, where it may be chosen. */
  draft?: number | undefined
}

/**
 * Asks which graph a new execution follows. The current one comes first: it is the one that was repaired. The draft is
 * only tried if one chooses it.
 */
export function VersionChoice<V extends Choice>({ value, onChange, same, current, draft }: VersionProps<V>) {
  const name = (version: number | undefined, words: string) =>
    version === undefined ? `The ${words}` : `Version ${version}, the ${words}`
  return (
    <Field label="Graph">
      <Select
        value={value}
        onChange={(chosen) => onChange(chosen as V)}
        choices={[
          ...(current === undefined && same !== undefined
            ? []
            : [
                {
                  value: 'current',
                  label: name(current, current === undefined ? 'published versions' : 'published one'),
                },
              ]),
          ...(draft === undefined ? [] : [{ value: 'draft', label: name(draft, 'draft') }]),
          ...(same !== undefined && (same === current || same === draft)
            ? []
            : [
                {
                  value: 'same',
                  label: name(same, same === undefined ? 'versions that they had' : 'one that it had'),
                },
              ]),
        ]}
      />
    </Field>
  )
}

type Repeated = Pick<Run, 'workflowId' | 'workflowVersion' | 'draft'>

/**
 * Asks for the version with which something of an execution is done anew: that of a test is the draft, that of others the
 * published one. `version` is undefined for the published one, which needs no right to build.
 */
export function useVersionOf({ workflowId, workflowVersion: same, draft: isTest }: Repeated, has = true) {
  const { data: workflow } = useWorkflow(workflowId)
  const builds = useRole(workflow?.teamId)('BUILDER')
  const current = has ? workflow?.version : undefined
  const draft = workflow?.draftVersion ?? undefined
  const [picked, pick] = useState<Choice>()
  const usual = isTest ? (draft === undefined ? 'same' : 'draft') : current === undefined ? 'same' : 'current'
  const value = builds ? (picked ?? usual) : 'current'
  const number = { same, current, draft }[value] ?? same
  const several = new Set([same, current ?? same, draft ?? same]).size > 1
  return {
    number,
    version: number === workflow?.version ? undefined : number,
    choice: builds && several && (
      <VersionChoice value={value} onChange={pick} same={same} current={current} draft={draft} />
    ),
  }
}
