import { useRef, useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { nameKey } from '../kit/names.ts'
import { Loaded } from '../kit/states.tsx'
import type { NodeFault } from './contract.ts'
import { useWorkflowSchema } from './data.ts'
import type { Edit } from './fields/field.ts'
import { JsonInput } from './fields/json.tsx'
import './nodeform.css'
import { ValueField } from './fields/value.tsx'
import { isRecord, type Schema } from './schema.ts'
import { FormContext, type FormScope, faultsAt, type Taker } from './scope.ts'

type Settings = Record<string, unknown>

export type SettingsPanelProps = {
  teamId: string
  workflowId: string | undefined
  settings: Settings
  /** With paths such as `settings.timezone`. */
  faults: readonly NodeFault[]
  readOnly: boolean
  onEdit: (edit: (now: Settings) => Settings) => void
  onClose: () => void
}

/** The settings of a workflow as a form, and the same as JSON. */
export function SettingsPanel(props: SettingsPanelProps) {
  const found = useWorkflowSchema()
  return (
    <section className="node-panel" aria-label="Settings of the workflow">
      <Loaded query={found}>
        {({ settings, settingGroups }) => (
          <Body
            {...props}
            schemas={settings.properties as Record<string, Schema>}
            groups={settingGroups as Group[]}
          />
        )}
      </Loaded>
    </section>
  )
}

type Group = { title: string; keys: readonly string[] }
type BodyProps = SettingsPanelProps & { schemas: Record<string, Schema>; groups: Group[] }

// What they are set to depends on no node and no run.
const NO_NODE = { node: { id: '', type: '', config: {} }, graph: { nodes: [], edges: [] } }

function Body({ schemas, groups, settings, onEdit, onClose, ...given }: BodyProps) {
  const [view, setView] = useState('form')
  const taker = useRef<Taker | null>(null)
  const scope: FormScope = { ...given, ...NO_NODE, uses: [], place: undefined, taker }
  // A setting that a request leaves out stays as it is stored: what is emptied is sent as its default.
  const usual = (key: string) => schemas[key]?.default ?? null
  const edit = (key: string) => (make: Edit) =>
    onEdit((now) => ({ ...now, [key]: make(now[key] ?? undefined) ?? usual(key) }))
  const take = (value: unknown) => {
    if (!isRecord(value)) return
    const known = groups.flatMap(({ keys }) => keys)
    onEdit(() => ({ ...Object.fromEntries(known.map((key) => [key, usual(key)])), ...value }))
  }
  const shown = groups.map(({ title, keys }) => (
    <section key={title} className="fields" aria-label={title}>
      <h3>{title}</h3>
      {keys.map((key) => (
        <ValueField
          key={key}
          schema={schemas[key]!}
          path={`settings.${key}`}
          label={nameKey(key)}
          required={isRecord(schemas[key]!.default)}
          value={settings[key] ?? usual(key) ?? undefined}
          edit={edit(key)}
        />
      ))}
    </section>
  ))
  return (
    <FormContext value={scope}>
      <div className="node-main">
        <header className="node-header">
          <h2>Settings of the workflow</h2>
          <Button small look="plain" icon="close" aria-label="Close the settings" onClick={onClose} />
        </header>
        <p className="node-summary quiet">
          They count for all its executions as soon as they are saved: only strict belongs to the draft.
        </p>
        <Tabs
          label="Views of the settings"
          value={view}
          onChange={setView}
          tabs={[
            { id: 'form', label: 'Form', content: <div className="fields">{shown}</div> },
            {
              id: 'json',
              label: 'JSON',
              content: (
                <JsonInput
                  label="The settings as JSON"
                  lines={24}
                  value={settings}
                  onChange={take}
                  refuse={(value) => (isRecord(value) ? undefined : 'Settings are an object.')}
                />
              ),
            },
          ]}
        />
        {faultsAt(given.faults, 'settings').length > 0 && view === 'json' && (
          <p className="wrong">Not saved: see the problems.</p>
        )}
      </div>
    </FormContext>
  )
}
