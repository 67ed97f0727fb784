import { tellError } from '../data/refusal.ts'
import { Switch } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Pill } from '../kit/status.tsx'
import { useWork } from '../kit/work.ts'
import { useRole } from '../shell/role.tsx'
import { changeWorkflow } from './data.ts'

type ActiveProps = {
  workflow: { id: string; name: string; active: boolean; teamId: string }
  /** Gets what was refused; without it a notice tells. */
  onError?: (error: unknown) => void
}

/** Whether a workflow's triggers start executions; a switch for those who may change it. */
export function ActiveSwitch({ workflow: { id, name, active, teamId }, onError }: ActiveProps) {
  const may = useRole(teamId)
  const { busy, run } = useWork({
    onError: onError ?? ((error) => notify(`${name}: ${tellError(error)}`, 'bad')),
  })
  if (!may('BUILDER')) return <Pill tone={active ? 'good' : undefined}>{active ? 'Active' : 'Inactive'}</Pill>
  const change = async (next: boolean) => {
    const { warnings = [], version, draftVersion } = await changeWorkflow(id, { active: next })
    const of = next && draftVersion !== null ? `, with version ${version}; its draft is not live` : ''
    notify(`${name} is ${next ? 'active' : 'inactive'} now${of}`)
    for (const { message } of warnings) notify(`${name}: ${message}`, 'bad')
    onError?.(null)
  }
  return (
    <span className="row">
      <Switch
        checked={active}
        disabled={busy}
        label={`${name} is active`}
        onChange={(next) => run(() => change(next))}
      />
      <span className="quiet" aria-hidden="true">
        {active ? 'Active' : 'Inactive'}
      </span>
    </span>
  )
}
