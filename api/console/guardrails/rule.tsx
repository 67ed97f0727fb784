import { type ReactNode, useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Code } from '../kit/code/code.tsx'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Checkbox, Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import { Refused } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { ManagedForm } from '../kit/tables/managedform.tsx'
import { useWork } from '../kit/work.ts'
import { createRule, type Rule, type Tried, tryRule, updateRule } from './data.ts'

const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
const ACTIONS = ['BLOCKED', 'WARNED', 'LOGGED'] as const
type RuleKind = Rule['kind']

/** What each kind is called, and the config that a new rule of it has. */
export const RULE_KINDS: Record<RuleKind, { label: string; config: Record<string, unknown> }> = {
  REGEX: { label: 'A pattern', config: { pattern: '', flags: 'i' } },
  KEYWORD_LIST: {
    label: 'A list of words',
    config: { keywords: [], wholeWord: true, caseSensitive: false },
  },
  JAVASCRIPT: {
    label: 'JavaScript',
    config: { code: "if (text.includes('secret')) return 'speaks of a secret'" },
  },
  LLM_PROMPT: { label: 'A question to a model', config: { instruction: '' } },
}

const FIELDS = ['description', 'severity', 'action', 'config']

/** Makes or changes a rule, which can be tried out on a sample before it is saved. */
export function RuleDialog({
  teamId,
  rule,
  onClose,
}: {
  teamId: string
  rule: Rule | null
  onClose: () => void
}) {
  const [description, setDescription] = useState(rule?.description ?? '')
  const [kind, setKind] = useState<RuleKind>(rule?.kind ?? 'KEYWORD_LIST')
  const [severity, setSeverity] = useState(rule?.severity ?? 'MEDIUM')
  const [action, setAction] = useState(rule?.action ?? 'BLOCKED')
  const [config, setConfig] = useState<Record<string, unknown>>(
    rule?.config ?? RULE_KINDS.KEYWORD_LIST.config,
  )

  const save = async (name: string) => {
    const settings = { name, description: description || null, severity, action, config }
    if (rule) await updateRule(rule.id, settings)
    else await createRule(teamId, { ...settings, kind } as Parameters<typeof createRule>[1])
  }

  return (
    <ManagedForm noun="rule" thing={rule} wide onClose={onClose} save={save} fields={FIELDS}>
      {(error) => (
        <>
          <Field label="Description" error={problemAt(error, 'description')}>
            <TextInput value={description} onChange={setDescription} maxLength={1_000} />
          </Field>
          <div className="filters">
            <Field label="Kind" error={problemAt(error, 'kind')}>
              <Select
                value={kind}
                disabled={rule !== null}
                onChange={(next) => {
                  setKind(next as RuleKind)
                  setConfig(RULE_KINDS[next as RuleKind].config)
                }}
                choices={Object.entries(RULE_KINDS).map(([value, { label }]) => ({ value, label }))}
              />
            </Field>
            <Field label="Severity">
              <Select
                value={severity}
                onChange={(next) => setSeverity(next as typeof severity)}
                choices={SEVERITIES.map((value) => ({ value, label: nameConstant(value) }))}
              />
            </Field>
            <Field label="Action">
              <Select
                value={action}
                onChange={(next) => setAction(next as typeof action)}
                choices={ACTIONS.map((value) => ({ value, label: nameConstant(value) }))}
              />
            </Field>
          </div>
          <ConfigFields kind={kind} config={config} onChange={setConfig} error={problemAt(error, 'config')} />
          <Trial teamId={teamId} kind={kind} config={config} />
        </>
      )}
    </ManagedForm>
  )
}

type ConfigProps = {
  kind: RuleKind
  config: Record<string, unknown>
  onChange: (config: Record<string, unknown>) => void
  error: string | undefined
}

function ConfigFields({ kind, config, onChange, error }: ConfigProps): ReactNode {
  const set = (change: Record<string, unknown>) => onChange({ ...config, ...change })
  if (kind === 'REGEX')
    return (
      <div className="filters">
        <Field label="Pattern" help="Of RE2: without look-around and back-references." error={error}>
          <TextInput
            value={String(config.pattern)}
            onChange={(pattern) => set({ pattern })}
            className="code"
          />
        </Field>
        <Field label="Flags" help="i: any case; m: lines; s: . is any character.">
          <TextInput value={String(config.flags)} onChange={(flags) => set({ flags })} maxLength={3} />
        </Field>
      </div>
    )
  if (kind === 'KEYWORD_LIST')
    return (
      <>
        <Keywords
          keywords={config.keywords as string[]}
          onChange={(keywords) => set({ keywords })}
          error={error}
        />
        <Checkbox checked={config.wholeWord === true} onChange={(wholeWord) => set({ wholeWord })}>
          Whole words only
        </Checkbox>
        <Checkbox
          checked={config.caseSensitive === true}
          onChange={(caseSensitive) => set({ caseSensitive })}
        >
          As they are written, in this case
        </Checkbox>
      </>
    )
  if (kind === 'JAVASCRIPT')
    return (
      <Field label="Code" help="Sees `text`; what it returns is what is wrong with it." error={error}>
        <Code value={String(config.code)} onChange={(code) => set({ code })} language="javascript" />
      </Field>
    )
  return (
    <Field
      label="What the model is to flag"
      help="Needs the model that an ADMIN has named in the team's guardrail settings."
      error={error}
    >
      <TextArea
        value={String(config.instruction)}
        onChange={(instruction) => set({ instruction })}
        rows={4}
      />
    </Field>
  )
}

type KeywordsProps = { keywords: string[]; onChange: (keywords: string[]) => void; error: string | undefined }

function Keywords({ keywords, onChange, error }: KeywordsProps) {
  // The typed text stays as it is: an empty line is on the way to a word.
  const [text, setText] = useState(keywords.join('\n'))
  return (
    <Field label="Words" help="One a line." error={error}>
      <TextArea
        value={text}
        rows={5}
        onChange={(next) => {
          setText(next)
          onChange(next.split('\n').flatMap((line) => (line.trim() ? [line.trim()] : [])))
        }}
      />
    </Field>
  )
}

/** Applies the rule, as the form has it, to a sample. */
function Trial({
  teamId,
  kind,
  config,
}: {
  teamId: string
  kind: RuleKind
  config: Record<string, unknown>
}) {
  const [sample, setSample] = useState('')
  const { busy, result, error, run } = useWork<Tried | undefined>()
  const tryOut = async () => {
    const rule = { kind, config } as NonNullable<Parameters<typeof tryRule>[1]['rule']>
    return (await tryRule(teamId, { rule, samples: [sample] }))[0]
  }
  return (
    <div className="panel stack">
      <Field label="Sample" help="To try the rule out on. Nothing is stored.">
        <TextArea value={sample} onChange={setSample} rows={3} />
      </Field>
      <div className="row">
        <Button busy={busy} disabled={sample === ''} onClick={() => run(tryOut)}>
          Try it out
        </Button>
        <span role="status">{result && <RuleOutcome {...result} />}</span>
      </div>
      <Refused error={error} />
    </div>
  )
}

export function RuleOutcome({ flagged, matches, more, error, durationMs }: Tried) {
  if (error) return <span className="failure">{error}</span>
  const count = matches.length + more
  const messages = matches.flatMap(({ message }) => (message ? [message] : [])).slice(0, 3)
  return (
    <>
      <Pill tone={flagged ? 'bad' : 'good'}>{flagged ? 'Flagged' : 'Not flagged'}</Pill>{' '}
      {flagged && `${count} ${count === 1 ? 'match' : 'matches'}`} {messages.join('; ')} in {durationMs} ms
    </>
  )
}
