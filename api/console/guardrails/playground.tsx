import { type FormEvent, useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Code } from '../kit/code/code.tsx'
import { Button } from '../kit/controls/button.tsx'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextArea } from '../kit/controls/input.tsx'
import { Refused } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { useWork } from '../kit/work.ts'
import { useTeam } from '../shell/role.tsx'
import { type Checked, checkText } from './data.ts'
import { Found } from './found.tsx'

const CHECKS = {
  detectPromptInjection: 'Prompt injection',
  redactPii: 'Personal data and secrets, redacted',
  filterContent: 'Unwanted content',
  applyCustomRules: "The team's rules",
  detectSemanticManipulation: 'Texts that mean what known attacks mean',
  validateSchema: 'JSON that fits a schema',
}
type Check = keyof typeof CHECKS

const FIRST: Check[] = ['detectPromptInjection', 'redactPii', 'filterContent']
const ON_VIOLATION = ['BLOCKED', 'WARNED', 'LOGGED'] as const
const SCHEMA = '{\n  "type": "object"\n}'

/** Try the checks out on a text. Nothing is stored. */
export function Playground() {
  const { teamId } = useTeam()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<readonly Check[]>(FIRST)
  const [sensitivity, setSensitivity] = useState<number | undefined>(0.7)
  const [onViolation, setOnViolation] = useState<(typeof ON_VIOLATION)[number]>('BLOCKED')
  const [schema, setSchema] = useState(SCHEMA)
  const { busy, result, error, run } = useWork<{ text: string; checked: Checked }>({ keep: true })

  const check = async () => ({
    text,
    checked: await checkText(teamId, {
      text,
      ...Object.fromEntries(chosen.map((name) => [name, true])),
      ...(sensitivity === undefined ? {} : { injectionSensitivity: sensitivity }),
      ...(chosen.includes('validateSchema') ? { jsonSchema: readSchema(schema) } : {}),
      onViolation,
    }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    run(check)
  }

  return (
    <div className="stack">
      <form className="stack" onSubmit={submit}>
        <Field label="Text" error={problemAt(error, 'text')}>
          <TextArea value={text} onChange={setText} rows={6} />
        </Field>
        <FieldGroup label="Look for">
          {(Object.keys(CHECKS) as Check[]).map((name) => (
            <Checkbox
              key={name}
              checked={chosen.includes(name)}
              onChange={(on) => setChosen(on ? [...chosen, name] : chosen.filter((one) => one !== name))}
            >
              {CHECKS[name]}
            </Checkbox>
          ))}
        </FieldGroup>
        <div className="pairs">
          <Field
            label="Sensitivity"
            help="Of prompt injection, 0 to 1. Higher flags more."
            error={problemAt(error, 'injectionSensitivity')}
          >
            <NumberInput value={sensitivity} onChange={setSensitivity} min={0} max={1} step={0.1} />
          </Field>
          <Field label="A violation is">
            <Select
              value={onViolation}
              onChange={(next) => setOnViolation(next as typeof onViolation)}
              choices={ON_VIOLATION.map((value) => ({ value, label: nameConstant(value) }))}
            />
          </Field>
        </div>
        {chosen.includes('validateSchema') && (
          <Field label="JSON Schema" error={problemAt(error, 'jsonSchema')}>
            <Code value={schema} onChange={setSchema} language="json" />
          </Field>
        )}
        <Refused error={error} except={['text', 'injectionSensitivity', 'jsonSchema']} />
        <div className="row">
          <Button type="submit" look="primary" busy={busy} disabled={text === '' || chosen.length === 0}>
            Check
          </Button>
          <span className="quiet">Nothing is stored.</span>
        </div>
      </form>
      {result && <Found {...result} />}
    </div>
  )
}

/** The schema as it was typed. Throws an Error that says where it is no JSON. */
function readSchema(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (error) {
    throw new Error(`The schema is no JSON: ${(error as Error).message}`)
  }
}
