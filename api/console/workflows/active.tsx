import { useState } from 'react'
import { tellError } from '../data/refusal.ts'
import { Switch } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { Pill } from '../kit/status.tsx'
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
  const [busy, setBusy] = useState(false)
  if (!may('BUILDER')) return <Pill tone={active ? 'good' : undefined}>{active ? 'Active' : 'Inactive'}</Pill>
  const change = async (next: boolean) => {
    setBusy(true)
    try {
      const { warnings = [] } = await changeWorkflow(id, { active: next })
      notify(`${name} is ${next ? 'active' : 'inactive'} now`)
      for (const { message } of warnings) notify(`${name}: ${message}`, 'bad')
      onError?.(null)
    } catch (error) {
      if (onError) onError(error)
      else notify(`${name}: ${tellError(error)}`, 'bad')
    } finally {
      setBusy(false)
    }
  }
  return (
    <span className="row">
      <Switch
        checked={active}
        disabled={busy}
        label={`${name} is active`}
        onChange={(next) => void change(next)}
      />
      <span className="quiet" aria-hidden="true">
        {active ? 'Active' : 'Inactive'}
      </span>
    </span>
  )
}
