import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { notify } from '../kit/notices.tsx'
import { FormDialog } from '../kit/overlays/dialog.tsx'
import { WorkflowChoice } from './choice.tsx'
import type { Workflow } from './data.ts'
import { changeWorkflow } from './data.ts'

type Settings = Workflow['settings']
type Concurrency = NonNullable<Settings['concurrency']>

const SHOWN = ['name', 'description', 'settings.timeoutMs', 'settings.timezone', 'settings.chatHistoryTokens']
const POLICIES: { value: Concurrency['policy']; label: string }[] = [
  { value: 'queue', label: 'Queue a new one' },
  { value: 'reject', label: 'Refuse a new one' },
  { value: 'replace', label: 'Cancel the oldest' },
]

/** The name, the description and every setting of a workflow. */
export function SettingsDialog({
  open,
  onClose,
  workflow,
}: {
  open: boolean
  onClose: () => void
  workflow: Workflow
}) {
  const [name, setName] = useState(workflow.name)
  const [description, setDescription] = useState(workflow.description ?? '')
  const [settings, setSettings] = useState(workflow.settings)
  const set = (change: Partial<Settings>) => setSettings({ ...settings, ...change })
  const save = async () => {
    // Only the fields that were changed here are sent, so that another user's change is not undone.
    const changed: Partial<Settings> = { ...settings }
    for (const key of Object.keys(changed) as (keyof Settings)[]) {
      if (JSON.stringify(changed[key]) === JSON.stringify(workflow.settings[key])) delete changed[key]
    }
    await changeWorkflow(workflow.id, {
      ...(name === workflow.name ? {} : { name }),
      ...(description === (workflow.description ?? '') ? {} : { description: description || null }),
      settings: changed,
    })
    notify('Settings saved')
  }
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title={`Settings of ${workflow.name}`}
      label="Save"
      wide
      onSubmit={save}
      fields={SHOWN}
    >
      {(error) => (
        <div className="workflow-settings">
          <Field label="Name" required error={problemAt(error, 'name')}>
            <TextInput value={name} maxLength={200} onChange={setName} />
          </Field>
          <Field label="Description" error={problemAt(error, 'description')}>
            <TextArea value={description} maxLength={5_000} onChange={setDescription} />
          </Field>
          <Field
            label="Time limit in seconds"
            help="An execution that takes longer fails; empty for none."
            error={problemAt(error, 'settings.timeoutMs')}
          >
            <NumberInput
              min={0.001}
              value={settings.timeoutMs === null ? undefined : settings.timeoutMs / 1_000}
              onChange={(seconds) =>
                set({ timeoutMs: seconds === undefined ? null : Math.round(seconds * 1_000) })
              }
            />
          </Field>
          <Field
            label="Time zone"
            help="Of nodes that name none, such as Europe/Berlin; empty for UTC."
            error={problemAt(error, 'settings.timezone')}
          >
            <TextInput value={settings.timezone ?? ''} onChange={(zone) => set({ timezone: zone || null })} />
          </Field>
          <AtOnce value={settings.concurrency} onChange={(concurrency) => set({ concurrency })} />
          <Kept settings={settings} set={set} />
          <FieldGroup label="When it fails">
            <Field label="Error workflow" help="Started at its ERROR_TRIGGER when an execution has failed.">
              <WorkflowChoice
                value={settings.errorWorkflowId ?? ''}
                onChange={(id) => set({ errorWorkflowId: id || null })}
                placeholder="None"
              />
            </Field>
            <Checkbox checked={settings.strict} onChange={(strict) => set({ strict })}>
              Strict: an expression that reads what is not there fails (publishes a new version at once)
            </Checkbox>
          </FieldGroup>
          <Field
            label="Tokens of a chat’s history"
            help="What an execution gets of earlier messages; what is older is summarised."
            error={problemAt(error, 'settings.chatHistoryTokens')}
          >
            <NumberInput
              min={100}
              value={settings.chatHistoryTokens}
              onChange={(tokens) => set({ chatHistoryTokens: tokens ?? 0 })}
            />
          </Field>
        </div>
      )}
    </FormDialog>
  )
}

function AtOnce({
  value,
  onChange,
}: {
  value: Concurrency | null
  onChange: (value: Concurrency | null) => void
}) {
  return (
    <FieldGroup label="Executions at once">
      <Field label="At most" help="Empty for no limit.">
        <NumberInput
          min={1}
          step={1}
          value={value?.limit}
          onChange={(limit) =>
            onChange(limit === undefined ? null : { key: null, policy: 'queue', ...value, limit })
          }
        />
      </Field>
      {value && (
        <>
          <Field label="At the limit">
            <Select
              value={value.policy}
              choices={POLICIES}
              onChange={(policy) =>
                onChange({ ...value, policy: POLICIES.find((one) => one.value === policy)!.value })
              }
            />
          </Field>
          <Field
            label="Key"
            help="Executions with the same key share the limit, such as {{ $trigger.body.customer }}."
          >
            <TextInput
              value={value.key ?? ''}
              maxLength={1_000}
              onChange={(key) => onChange({ ...value, key: key || null })}
            />
          </Field>
        </>
      )}
    </FieldGroup>
  )
}

function Kept({ settings, set }: { settings: Settings; set: (change: Partial<Settings>) => void }) {
  const { retention, saveData } = settings
  const keep = (change: { days?: number | null; count?: number | null }) => {
    const next = { days: null, count: null, ...retention, ...change }
    set({ retention: next.days === null && next.count === null ? null : next })
  }
  return (
    <FieldGroup label="What is kept of executions that have ended">
      <Field label="For days" help="Empty: as long as the team's plan says.">
        <NumberInput
          min={1}
          step={1}
          value={retention?.days ?? undefined}
          onChange={(days) => keep({ days: days ?? null })}
        />
      </Field>
      <Field label="The newest" help="Empty for any number of executions.">
        <NumberInput
          min={1}
          step={1}
          value={retention?.count ?? undefined}
          onChange={(count) => keep({ count: count ?? null })}
        />
      </Field>
      <Checkbox checked={saveData.inputs} onChange={(inputs) => set({ saveData: { ...saveData, inputs } })}>
        The data they were started with
      </Checkbox>
      <Checkbox
        checked={saveData.outputs}
        onChange={(outputs) => set({ saveData: { ...saveData, outputs } })}
      >
        The outputs of their nodes
      </Checkbox>
    </FieldGroup>
  )
}
