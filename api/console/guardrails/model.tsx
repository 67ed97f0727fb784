import '../people/team.css'
import { useState } from 'react'
import { Link } from 'wouter'
import { useCredentials } from '../credentials/data.ts'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, NumberInput, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { Facts } from '../kit/header.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { formatMoney, Time } from '../kit/time.tsx'
import { useWork } from '../kit/work.ts'
import { MODEL_PROVIDERS } from '../monitoring/usage/data.ts'
import { SettingsForm } from '../settings/form.tsx'
import { useRole, useTeam } from '../shell/role.tsx'
import {
  type GuardrailSettings,
  type Tried,
  tryRule,
  updateGuardrailSettings,
  useGuardrailSettings,
} from './data.ts'
import { RuleOutcome } from './rule.tsx'

const CHECKS = {
  injection: 'Prompt injection, beside the detectors',
  content: 'Unwanted content, beside the detectors',
} as const
type Check = keyof typeof CHECKS

/** The model that judges texts where the detectors are not enough, with the most that it may cost. */
export function ModelView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const found = useGuardrailSettings(teamId)
  return (
    <div className="settings">
      <Loaded query={found} rows={4}>
        {(settings) => (
          <>
            <Spent settings={settings} />
            {mayChange && <ModelForm key={settings.updatedAt ?? 'none'} settings={settings} />}
            {settings.model !== null && settings.credentialId !== null && <Trial teamId={teamId} />}
          </>
        )}
      </Loaded>
    </div>
  )
}

function Spent({ settings }: { settings: GuardrailSettings }) {
  const { model, monthlyCostCap: cap, spentThisMonth: spent, checks, updatedAt } = settings
  if (model === null)
    return (
      <p className="quiet">
        No model helps: the detectors of the service check by themselves, and no text leaves it.
      </p>
    )
  return (
    <section className="panel stack" aria-label="This month">
      <h2>This month</h2>
      {cap !== null && (
        <>
          <meter
            className="meter"
            aria-label="Cost in this month"
            max={cap || 1}
            high={(cap || 1) * 0.9}
            value={Math.min(spent, cap || 1)}
          />
          <p>
            {formatMoney(spent)} of {formatMoney(cap)}
            <span className="quiet"> in this calendar month (UTC)</span>
          </p>
        </>
      )}
      <Facts
        facts={[
          ['Model', model],
          ['Asked for', checks.length > 0 && checks.map((check) => CHECKS[check]).join(', ')],
          ['Set', updatedAt && <Time key="set" at={updatedAt} />],
        ]}
      />
    </section>
  )
}

function ModelForm({ settings }: { settings: GuardrailSettings }) {
  const { teamId } = useTeam()
  const { data: all = [] } = useCredentials(teamId)
  const [credentialId, setCredentialId] = useState(settings.credentialId ?? '')
  const [model, setModel] = useState(settings.model ?? '')
  const [cap, setCap] = useState<number | undefined>(settings.monthlyCostCap ?? undefined)
  const [checks, setChecks] = useState<Check[]>(settings.checks)
  const fitting = all.filter(({ type }) => type in MODEL_PROVIDERS)
  const send = () =>
    updateGuardrailSettings(teamId, {
      credentialId: credentialId || null,
      model: model || null,
      monthlyCostCap: cap ?? null,
      checks,
    })
  return (
    <SettingsForm
      title="A model for guardrails"
      help="It judges what rules ask it, and texts of the checks that you choose. These texts are sent to its provider."
      label="Save the model"
      done="Saved"
      fields={['credentialId', 'model', 'monthlyCostCap', 'checks']}
      onSubmit={send}
    >
      {(error) => (
        <>
          <Field
            label="Credential"
            help={
              fitting.length === 0 ? (
                <>
                  The team has none for models: <Link href="/credentials">make one</Link>.
                </>
              ) : (
                'Without one no model is asked.'
              )
            }
            error={problemAt(error, 'credentialId')}
          >
            <Select
              value={credentialId}
              onChange={setCredentialId}
              empty="None"
              choices={fitting.map(({ id, name }) => ({ value: id, label: name }))}
            />
          </Field>
          <Field
            label="Model"
            help="The vendor's name of it, such as gpt-4o-mini; of Azure that of the deployment."
            error={problemAt(error, 'model')}
          >
            <TextInput value={model} onChange={setModel} maxLength={200} className="code" />
          </Field>
          <Field
            label="Most US dollars in a month"
            help="At the cap, the checks that need the model cannot be made. So it is if the price of the model is not known."
            error={problemAt(error, 'monthlyCostCap')}
          >
            <NumberInput value={cap} min={0} onChange={setCap} />
          </Field>
          <FieldGroup label="Ask it in checks for">
            {(Object.keys(CHECKS) as Check[]).map((check) => (
              <Checkbox
                key={check}
                checked={checks.includes(check)}
                onChange={(on) => setChecks(on ? [...checks, check] : checks.filter((one) => one !== check))}
              >
                {CHECKS[check]}
              </Checkbox>
            ))}
            {problemAt(error, 'checks') && <p className="wrong">{problemAt(error, 'checks')}</p>}
          </FieldGroup>
        </>
      )}
    </SettingsForm>
  )
}

const INSTRUCTION = 'Flag texts in which somebody asks for a password or another secret.'

/** Asks the model that is set once, as a rule does. */
function Trial({ teamId }: { teamId: string }) {
  const [instruction, setInstruction] = useState(INSTRUCTION)
  const [sample, setSample] = useState('Please send me the password of the administrator.')
  const { busy, result, error, run } = useWork<Tried | undefined>()
  const ask = async () => {
    const rule = { kind: 'LLM_PROMPT' as const, config: { instruction } }
    return (await tryRule(teamId, { rule, samples: [sample] }))[0]
  }
  return (
    <section className="panel stack" aria-label="Test the model">
      <h2>Test the model</h2>
      <p className="quiet">Asks it once, as a rule does. What that costs counts.</p>
      <Field label="What it is to flag">
        <TextArea value={instruction} onChange={setInstruction} rows={2} />
      </Field>
      <Field label="Sample">
        <TextArea value={sample} onChange={setSample} rows={2} />
      </Field>
      <div className="row">
        <Button busy={busy} disabled={sample === '' || instruction === ''} onClick={() => run(ask)}>
          Ask the model
        </Button>
        <span role="status">{result && <RuleOutcome {...result} />}</span>
      </div>
      <Refused error={error} />
    </section>
  )
}
