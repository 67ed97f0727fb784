import { useMemo, useState } from 'react'
import { go } from '../../kit/address.ts'
import { notify } from '../../kit/notices.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { isOpen } from '../../kit/status.tsx'
import { type Role, useRole } from '../../shell/role.tsx'
import { cancelExecution, deleteExecution } from '../data.ts'
import { saveText } from '../detail/save.ts'
import type { Run } from '../live.ts'

type Act = { label: string; role: Role; look?: 'primary' | 'danger'; start: () => void }

/** What the user may do with an execution; without its team, nothing. `asked` is the dialog that an act has opened. */
export function useActs(run: Run, teamId: string | undefined) {
  const may = useRole(teamId)
  const confirm = useConfirm()
  const [asked, setAsked] = useState<'retry' | 'rerun' | 'input' | null>(null)
  const open = isOpen(run.status)
  const failed = run.status === 'FAILED' || run.status === 'CANCELLED'
  // Outputs given by hand, parts of a workflow, and tests of other versions are a BUILDER's.
  const given =
    run.draft ||
    run.onlyNode !== null ||
    run.until !== null ||
    run.nodeExecutions.some(({ pinned }) => pinned)
  const least = given ? 'BUILDER' : 'OPERATOR'
  const acts = useMemo(() => {
    const cancel = () =>
      confirm({
        title: 'Cancel this execution?',
        text: 'Nodes that are running are told to stop. What they have done already is not undone.',
        label: 'Cancel execution',
        danger: true,
        work: async () => {
          await cancelExecution(run.id)
          notify('The execution is being cancelled')
        },
      })
    const all: (Act | false)[] = [
      open && { label: 'Cancel execution', role: 'OPERATOR', look: 'danger', start: cancel },
      failed && {
        label: 'Retry from failed nodes',
        role: least,
        look: 'primary',
        start: () => setAsked('retry'),
      },
      !open && { label: 'Execute again', role: least, start: () => setAsked('rerun') },
      !run.hidden &&
        run.onlyNode === null && {
          label: 'Execute with this input',
          role: 'OPERATOR',
          start: () => setAsked('input'),
        },
    ]
    return all.filter((one): one is Act => one !== false && teamId !== undefined && may(one.role))
  }, [confirm, run.id, run.hidden, run.onlyNode, open, failed, least, may, teamId])
  return { acts, asked, close: () => setAsked(null) }
}

/** Deletes an execution that has ended, once the user has agreed. */
export function useRemoval(run: Run): () => void {
  const confirm = useConfirm()
  return () =>
    confirm({
      title: 'Delete this execution?',
      text: 'Its input, outputs, records and files go, and its history in Temporal. It cannot be undone.',
      label: 'Delete execution',
      danger: true,
      work: async () => {
        await deleteExecution(run.id)
        go('/executions', { replace: true })
        notify('The execution is deleted')
      },
    })
}

/** Offers an execution as a file. */
export function saveRun(run: Run): void {
  const { records, cancelRequested, ...document } = run
  saveText(`execution-${run.id}.json`, JSON.stringify(document, null, 2))
}
