import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { readPage, useQueryState } from '../kit/address.ts'
import { Field, FieldGroup } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { Loaded } from '../kit/states.tsx'
import { nameConstant } from '../kit/status.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Table } from '../kit/tables/table.tsx'
import { Time } from '../kit/time.tsx'
import { useTeam } from '../shell/role.tsx'
import {
  confirmUser,
  type Egress,
  type Masking,
  updateEgress,
  updateMasking,
  useEgress,
  useMasking,
  useRateLimits,
} from './data.ts'
import { SettingsForm } from './form.tsx'

/** What the instance's admin sets for all teams, and for the chosen one. */
export function InstanceSettings() {
  const { teamId } = useTeam()
  const masking = useMasking()
  const egress = useEgress(teamId)
  return (
    <>
      <div className="settings">
        <Loaded query={masking} rows={4}>
          {(known) => <MaskingForm masking={known} />}
        </Loaded>
        <Loaded query={egress} rows={4}>
          {(known) => <EgressForm key={teamId} egress={known} />}
        </Loaded>
        <ConfirmUser />
      </div>
      <RateLimits />
    </>
  )
}

function readLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}

const STYLES = [
  { value: 'LABEL', label: 'By a label: [EMAIL]' },
  { value: 'PARTIAL', label: 'Partly: b***@a.example' },
]

/** Kinds of personal data whose names are no words. */
const KINDS: Record<string, string> = {
  email: 'E-mail',
  ssn: 'Social security number (US)',
  iban: 'IBAN',
  ip_address: 'IP address',
}

function MaskingForm({ masking }: { masking: Masking }) {
  const [detectors, setDetectors] = useState(masking.detectors)
  const [style, setStyle] = useState<string>(masking.style)
  const [patterns, setPatterns] = useState(
    masking.patterns.map(({ name, pattern }) => `${name} ${pattern}`).join('\n'),
  )
  const [keys, setKeys] = useState(masking.keys.join('\n'))
  const send = () =>
    updateMasking({
      detectors,
      style: style === 'PARTIAL' ? 'PARTIAL' : 'LABEL',
      keys: readLines(keys),
      patterns: readLines(patterns).map((line) => {
        const [name = '', ...rest] = line.split(' ')
        return { name, pattern: rest.join(' ') }
      }),
    })
  const kinds = Object.keys(detectors) as (keyof typeof detectors)[]
  return (
    <SettingsForm
      title="Masking"
      help="What exports and audit entries mask, for all teams. Secrets are always masked."
      label="Save masking"
      done="Masking saved"
      fields={['style', 'patterns', 'keys']}
      onSubmit={send}
    >
      {(error) => (
        <>
          <FieldGroup label="Personal data">
            {kinds.map((kind) => (
              <Checkbox
                key={kind}
                checked={detectors[kind]}
                onChange={(on) => setDetectors({ ...detectors, [kind]: on })}
              >
                {KINDS[kind] ?? nameConstant(kind)}
              </Checkbox>
            ))}
          </FieldGroup>
          <Field label="Style" error={problemAt(error, 'style')}>
            <Select value={style} onChange={setStyle} choices={STYLES} />
          </Field>
          <Field
            label="Patterns"
            help="One a line: a name, a space, and a regular expression, such as CUSTOMER cust-\d{4,9}"
            error={problemAt(error, 'patterns')}
          >
            <TextArea code value={patterns} onChange={setPatterns} />
          </Field>
          <Field
            label="Keys"
            help="One a line: their values are masked as secrets"
            error={problemAt(error, 'keys')}
          >
            <TextArea code value={keys} onChange={setKeys} />
          </Field>
        </>
      )}
    </SettingsForm>
  )
}

function EgressForm({ egress }: { egress: Egress }) {
  const { teamId, teamName } = useTeam()
  const [allow, setAllow] = useState(egress.allow.join('\n'))
  const [deny, setDeny] = useState(egress.deny.join('\n'))
  return (
    <SettingsForm
      title="Egress"
      help={`Where the calls of ${teamName} may lead, besides what the instance allows. What is denied is denied, whatever allows it.`}
      label="Save egress"
      done="Egress saved"
      fields={['allow', 'deny']}
      onSubmit={() => updateEgress(teamId, { allow: readLines(allow), deny: readLines(deny) })}
    >
      {(error) => (
        <>
          <Field
            label="Allow"
            help="One a line: an address, a range such as 10.1.0.0/16, or a host such as *.example.com"
            error={problemAt(error, 'allow')}
          >
            <TextArea code value={allow} onChange={setAllow} />
          </Field>
          <Field label="Deny" help="One a line" error={problemAt(error, 'deny')}>
            <TextArea code value={deny} onChange={setDeny} />
          </Field>
        </>
      )}
    </SettingsForm>
  )
}

function ConfirmUser() {
  const [email, setEmail] = useState('')
  const send = async () => {
    await confirmUser(email)
    setEmail('')
  }
  return (
    <SettingsForm
      title="Confirm a user’s e-mail"
      help="On your word, without a mail."
      label="Confirm e-mail"
      done="The e-mail is confirmed"
      fields={['email']}
      onSubmit={send}
    >
      {(error) => (
        <Field label="E-mail" required error={problemAt(error, 'email')}>
          <TextInput type="email" value={email} maxLength={320} onChange={setEmail} />
        </Field>
      )}
    </SettingsForm>
  )
}

function RateLimits() {
  const [{ page }, , linkTo] = useQueryState({ tab: 'team', page: '' })
  const found = useRateLimits(readPage(page))
  return (
    <section className="part">
      <h2>Requests in this minute</h2>
      <Loaded query={found} rows={3}>
        {(list) => (
          <>
            <Table
              label="Rate limits"
              rows={list.content}
              keyOf={({ kind, id }) => `${kind} ${id}`}
              columns={[
                {
                  heading: 'Who',
                  cell: ({ name, id }) => <span className="name">{name ?? id}</span>,
                },
                { heading: 'Kind', cell: ({ kind }) => (kind === 'IP' ? 'Address' : nameConstant(kind)) },
                { heading: 'Used', number: true, cell: ({ used }) => used.toLocaleString() },
                { heading: 'Limit', number: true, cell: ({ limit }) => limit.toLocaleString() },
                { heading: 'Counted anew', cell: ({ resetAt }) => <Time at={resetAt} /> },
              ]}
            />
            <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
          </>
        )}
      </Loaded>
    </section>
  )
}
