import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { ManagedForm } from '../kit/tables/managedform.tsx'
import { WorkflowChoice } from '../workflows/choice.tsx'
import { createWidget, updateWidget, type Widget } from './data.ts'

type EditProps = {
  teamId: string
  widget: Widget | null
  onClose: () => void
  onMade: (widget: Widget) => void
}
type Theme = Widget['theme']

const FIRST: Theme = {
  colours: { accent: '#1f5fd0', background: '#ffffff', text: '#1a1d23' },
  title: 'Chat with us',
  welcomeText: 'Hello! How can we help?',
  position: 'bottom-right',
}
const POSITIONS = [
  { value: 'bottom-right', label: 'Bottom right' },
  { value: 'bottom-left', label: 'Bottom left' },
]
const COLOURS = ['accent', 'background', 'text'] as const
const AGENTS = { agent: 'true' } as const
const FIELDS = ['workflowId', 'theme.title', 'theme.welcomeText']

/** Makes or changes a widget. */
export function WidgetDialog({ teamId, widget, onClose, onMade }: EditProps) {
  const [workflowId, setWorkflowId] = useState(widget?.workflowId ?? '')
  const [origins, setOrigins] = useState(widget?.allowedOrigins.join('\n') ?? '')
  const [theme, setTheme] = useState(widget?.theme ?? FIRST)
  const [perVisitor, setPerVisitor] = useState<number | undefined>(widget?.limits.perVisitor ?? 50)
  const [perDay, setPerDay] = useState<number | undefined>(widget?.limits.perDay ?? 1_000)
  const [collectEmail, setCollectEmail] = useState(widget?.collectEmail ?? false)
  const set = (change: Partial<Theme>) => setTheme({ ...theme, ...change })

  const save = async (name: string) => {
    const limits = {
      ...(perVisitor === undefined ? {} : { perVisitor }),
      ...(perDay === undefined ? {} : { perDay }),
    }
    const allowedOrigins = origins.split(/[\s,]+/).filter(Boolean)
    const wanted = { name, allowedOrigins, theme, limits, collectEmail }
    if (widget) await updateWidget(widget.id, { ...wanted, ...(workflowId ? { workflowId } : {}) })
    else onMade(await createWidget({ ...wanted, teamId, workflowId }))
  }

  return (
    <ManagedForm
      noun="widget"
      thing={widget}
      wide
      nameHelp="Visitors do not see it."
      maxName={200}
      onClose={onClose}
      save={save}
      fields={FIELDS}
    >
      {(error) => (
        <>
          <Field
            label="Workflow"
            help="Those are offered whose chat trigger leads to an agent. It must be active for visitors to chat."
            error={problemAt(error, 'workflowId')}
          >
            <WorkflowChoice
              value={workflowId}
              onChange={setWorkflowId}
              placeholder="Choose an agent"
              only={AGENTS}
            />
          </Field>
          <Field label="Pages that may show it" help="One origin a line, such as https://www.example.com.">
            <TextArea value={origins} onChange={setOrigins} rows={2} />
          </Field>
          <Field label="Title" required error={problemAt(error, 'theme.title')}>
            <TextInput value={theme.title} onChange={(title) => set({ title })} required maxLength={60} />
          </Field>
          <Field label="Welcome text" required error={problemAt(error, 'theme.welcomeText')}>
            <TextArea
              value={theme.welcomeText}
              onChange={(welcomeText) => set({ welcomeText })}
              required
              rows={2}
            />
          </Field>
          <div className="filters">
            {COLOURS.map((colour) => (
              <Field key={colour} label={`Colour: ${colour}`}>
                <TextInput
                  type="color"
                  value={theme.colours[colour]}
                  onChange={(value) => set({ colours: { ...theme.colours, [colour]: value } })}
                />
              </Field>
            ))}
            <Field label="Position">
              <Select
                value={theme.position}
                onChange={(position) => set({ position: position as Theme['position'] })}
                choices={POSITIONS}
              />
            </Field>
            <Field label="Messages of a visitor a day">
              <NumberInput value={perVisitor} onChange={setPerVisitor} />
            </Field>
            <Field label="Messages of all a day">
              <NumberInput value={perDay} onChange={setPerDay} />
            </Field>
          </div>
          <Checkbox checked={collectEmail} onChange={setCollectEmail}>
            Ask visitors for their e-mail address before they chat
          </Checkbox>
        </>
      )}
    </ManagedForm>
  )
}
