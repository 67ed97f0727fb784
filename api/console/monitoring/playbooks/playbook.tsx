import { useState } from 'react'
import { makeKey } from '../../executions/starts/data.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Field, FieldGroup } from '../../kit/controls/field.tsx'
import { Checkbox, Select } from '../../kit/controls/input.tsx'
import { nameConstant } from '../../kit/status.tsx'
import { ManagedForm } from '../../kit/tables/managedform.tsx'
import { useTeam } from '../../shell/role.tsx'
import { WorkflowChoice } from '../../workflows/choice.tsx'
import { useChannels } from '../channels/data.ts'
import { ALERT_TYPES } from '../data.ts'
import {
  createPlaybook,
  type NewPlaybook,
  type Playbook,
  type PlaybookStep,
  SEVERITIES,
  STEP_TYPES,
  updatePlaybook,
} from './data.ts'

type EditProps = { teamId: string; playbook: Playbook | null; onClose: () => void }
/** The key is the step's while it is edited. */
type Edited = PlaybookStep & { key: string }

const withKey = (step: PlaybookStep): Edited => ({ ...step, key: makeKey() })

/** Makes or changes a playbook. For which workflows it runs, and what its steps hand on, stays as it is. */
export function PlaybookDialog({ teamId, playbook, onClose }: EditProps) {
  const [alertTypes, setAlertTypes] = useState(playbook?.on.alertTypes ?? [...ALERT_TYPES])
  const [minSeverity, setMinSeverity] = useState(playbook?.on.minSeverity ?? 'MEDIUM')
  const [evaluations, setEvaluations] = useState(playbook?.on.evaluations ?? false)
  const [steps, setSteps] = useState<Edited[]>(() => {
    const given: PlaybookStep[] = playbook?.steps ?? [{ type: 'NOTIFY' }]
    return given.map(withKey)
  })

  const save = async (name: string) => {
    const wanted = {
      name,
      on: { alertTypes, minSeverity, evaluations },
      steps: steps.map(({ key, ...step }) => step) as NewPlaybook['steps'],
    }
    if (playbook) await updatePlaybook(playbook, wanted)
    else await createPlaybook(teamId, wanted)
  }
  const change = (key: string, next: PlaybookStep) =>
    setSteps(steps.map((step) => (step.key === key ? { ...next, key } : step)))

  return (
    <ManagedForm noun="playbook" thing={playbook} wide onClose={onClose} save={save}>
      <FieldGroup label="Runs for">
        {ALERT_TYPES.map((type) => (
          <Checkbox
            key={type}
            checked={alertTypes.includes(type)}
            onChange={(on) =>
              setAlertTypes(on ? [...alertTypes, type] : alertTypes.filter((other) => other !== type))
            }
          >
            Alerts: {nameConstant(type)}
          </Checkbox>
        ))}
        <Checkbox checked={evaluations} onChange={setEvaluations}>
          Evaluations that score too low
        </Checkbox>
      </FieldGroup>
      <Field label="Least severity">
        <Select
          value={minSeverity}
          onChange={(next) => setMinSeverity(next as typeof minSeverity)}
          choices={SEVERITIES.map((value) => ({ value, label: nameConstant(value) }))}
        />
      </Field>
      <FieldGroup label="Steps, one after the other">
        {steps.map((step, at) => (
          <div key={step.key} className="filters">
            <StepFields at={at} step={step} onChange={(next) => change(step.key, next)} />
            {steps.length > 1 && (
              <Button
                icon="trash"
                look="plain"
                aria-label={`Remove step ${at + 1}`}
                onClick={() => setSteps(steps.filter(({ key }) => key !== step.key))}
              />
            )}
          </div>
        ))}
        <div className="row">
          <Button small icon="plus" onClick={() => setSteps([...steps, withKey({ type: 'NOTIFY' })])}>
            Add a step
          </Button>
        </div>
      </FieldGroup>
    </ManagedForm>
  )
}

type StepProps = { at: number; step: PlaybookStep; onChange: (step: PlaybookStep) => void }

function StepFields({ at, step, onChange }: StepProps) {
  const { teamId } = useTeam()
  const { data: channels = [] } = useChannels(teamId)
  return (
    <>
      <Field label={`Step ${at + 1}`}>
        <Select
          value={step.type}
          onChange={(next) => onChange({ type: next as PlaybookStep['type'] })}
          choices={STEP_TYPES.map((value) => ({ value, label: nameConstant(value) }))}
        />
      </Field>
      {step.type === 'NOTIFY' ? (
        <Field label={`Channel of step ${at + 1}`}>
          <Select
            required
            value={step.channelId ?? ''}
            onChange={(channelId) => onChange({ ...step, channelId })}
            empty="Choose a channel"
            choices={channels.map(({ id, name }) => ({ value: id, label: name }))}
          />
        </Field>
      ) : (
        <Field label={`Workflow of step ${at + 1}`}>
          <WorkflowChoice
            value={step.workflowId ?? ''}
            onChange={(workflowId) => {
              const { workflowId: _, ...rest } = step
              onChange(workflowId === '' ? rest : { ...rest, workflowId })
            }}
            placeholder={step.type === 'START_WORKFLOW' ? 'Choose a workflow' : 'The one it is about'}
          />
        </Field>
      )}
    </>
  )
}
