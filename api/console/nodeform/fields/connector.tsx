import { type ReactNode, useState } from 'react'
import { type Action, listOptions, useConnector, useConnectors } from '../../connectors/data.ts'
import { tellError } from '../../data/refusal.ts'
import { ExpressionInput } from '../../expressions/input.tsx'
import { Button } from '../../kit/controls/button.tsx'
import { Select, TextInput } from '../../kit/controls/input.tsx'
import { nameKey } from '../../kit/names.ts'
import { useWork } from '../../kit/work.ts'
import { isRecord, kindOfSchema, type Schema } from '../schema.ts'
import { faultsAt, useForm } from '../scope.ts'
import { Section } from '../section.tsx'
import { type Edit, editKey, type ValueProps } from './field.ts'
import { JsonInput } from './json.tsx'
import { Labelled } from './leaf.tsx'
import { UnknownKeys } from './unknown.tsx'
import { ValueField } from './value.tsx'

/** How many actions are offered before one must search. */
const MANY = 50

type Props = {
  schemas: Record<string, Schema>
  edit: (edit: Edit) => void
  credential: ReactNode
  /** The action and its input as plain fields, for a service that is not known here. */
  others: ReactNode
}

/** The settings of a CONNECTOR: the service, what is done there, as whom, and what it is given. */
export function ConnectorFields({ schemas, edit, credential, others }: Props) {
  const { node, teamId, readOnly } = useForm()
  const { connector = '', action: actionId = '' } = node.config as Record<string, string>
  const { data: all = [] } = useConnectors(teamId)
  const [search, setSearch] = useState('')
  const chosen = all.find(({ id, name }) => id === connector || name === connector)
  const { data: found } = useConnector(chosen?.id ?? '', search)
  const { data: named } = useConnector(chosen?.id ?? '', actionId)
  const actions = found?.actions ?? []
  const action = [...actions, ...(named?.actions ?? [])].find(({ id }) => id === actionId)
  const set = (key: string, value: string) =>
    edit((config) => editKey(Object(config), key, () => (value === '' ? undefined : value)))
  const choices = actions.map(({ id, name }) => ({ value: id, label: name }))
  if (actionId !== '' && !choices.some(({ value }) => value === actionId))
    choices.unshift({ value: actionId, label: action?.name ?? actionId })
  return (
    <>
      <Labelled {...fieldOf('connector', schemas, 'Service')}>
        <Select
          value={connector}
          disabled={readOnly}
          {...(connector === '' ? { empty: 'Choose a service' } : {})}
          choices={[
            ...all.map(({ name, title }) => ({ value: name, label: title })),
            ...(connector !== '' && !all.some(({ name }) => name === connector)
              ? [{ value: connector, label: chosen?.title ?? connector }]
              : []),
          ]}
          onChange={(next) =>
            edit((config) => {
              const { action: _, input: __, version: ___, ...kept } = Object(config)
              return { ...kept, connector: next }
            })
          }
        />
      </Labelled>
      {connector !== '' && !chosen && (
        <>
          {others}
          {credential}
        </>
      )}
      {chosen && (
        <>
          {(found?.actionCount ?? 0) + search.length > MANY && (
            <TextInput
              aria-label="Search actions"
              placeholder="Search actions"
              value={search}
              onChange={setSearch}
            />
          )}
          <Labelled {...fieldOf('action', schemas, 'Action')}>
            <Select
              value={actionId}
              disabled={readOnly}
              {...(actionId === '' ? { empty: 'Choose what is done' } : {})}
              choices={choices}
              onChange={(next) => set('action', next)}
            />
          </Labelled>
          {action && <p className="quiet">{tellAction(action)}</p>}
          {chosen.signIn.length > 0 && credential}
          {chosen.signIn.length > 0 && named?.setup && <p className="quiet">{named.setup}</p>}
          {action && <InputFields action={action} connectorId={chosen.id} edit={edit} />}
        </>
      )}
    </>
  )
}

function tellAction({ summary, safety }: Action): string {
  const said = /[.!?]$/.test(summary) ? summary : `${summary}.`
  return safety === 'ONCE' ? `${said} It is sent at most once.` : said
}

const fieldOf = (key: string, schemas: Record<string, Schema>, label: string): ValueProps => ({
  ...{ schema: schemas[key] ?? {}, path: `config.${key}`, label, required: true },
  ...{ value: undefined, edit: () => {} },
})

/** The keys of an action's input: required ones first, the others as options. */
function InputFields({
  action,
  connectorId,
  edit,
}: {
  action: Action
  connectorId: string
  edit: (edit: Edit) => void
}) {
  const { node, faults } = useForm()
  const { input } = node.config
  const { properties = {}, required = [] } = action.input as Schema
  const editInput = (make: Edit) => edit((config) => editKey(Object(config), 'input', make))
  if (input !== undefined && !isRecord(input))
    return (
      <Labelled schema={{}} path="config.input" label="Input" value={input} edit={editInput}>
        <JsonInput value={input} onChange={(next) => editInput(() => next)} />
      </Labelled>
    )
  const held = input ?? {}
  const keys = Object.keys(properties)
  const isDue = (key: string) => required.includes(key)
  const field = (key: string) => {
    const schema = properties[key]!
    const props: ValueProps = {
      ...{ schema: orExpression(schema), path: `config.input.${key}`, label: schema.title ?? nameKey(key) },
      ...{ required: isDue(key), value: held[key] },
      edit: (make) => editInput((now) => editKey(isRecord(now) ? now : {}, key, make)),
    }
    return 'x-options' in schema ? (
      <ChosenField key={key} property={key} connectorId={connectorId} {...props} />
    ) : (
      <ValueField key={key} {...props} />
    )
  }
  const options = keys.filter((key) => !isDue(key))
  const set = options.filter((key) => held[key] !== undefined)
  const isWrong = options.some((key) => faultsAt(faults, `config.input.${key}`).length > 0)
  return (
    <>
      <UnknownKeys held={held} known={keys} path="config.input" edit={editInput} />
      {keys.filter(isDue).map(field)}
      {options.length > 0 && (
        <Section
          title="More of the input"
          note={set.length > 0 ? `${set.length} set` : ''}
          open={set.length > 0 || isWrong || options.length === keys.length}
        >
          <div className="fields">{options.map(field)}</div>
        </Section>
      )}
    </>
  )
}

/** Every value may be computed. */
function orExpression(schema: Schema): Schema {
  const kind = kindOfSchema(schema)
  if (kind === 'expression' || kind === 'any' || kind === 'variants' || kind === 'json') return schema
  const { title = '', description = '' } = schema
  return {
    ...(description ? { description } : {}),
    title,
    anyOf: [schema, { type: 'string', title: 'Expression' }],
  }
}

/** A value that the service lists: it can be chosen, or written. */
function ChosenField({
  property,
  connectorId,
  ...props
}: ValueProps & { property: string; connectorId: string }) {
  const { node, teamId, readOnly } = useForm()
  const { value, edit } = props
  const { busy, result, run } = useWork<{ choices: { value: string; label: string }[]; error?: string }>({
    keep: true,
  })
  const { action, credentialId, server, input } = node.config as Record<string, string>
  const load = async () => {
    try {
      const call = { teamId, action: action ?? '', input: isRecord(input) ? input : {} }
      const more = { ...(credentialId ? { credentialId } : {}), ...(server ? { server } : {}) }
      return { choices: await listOptions(connectorId, property, { ...call, ...more }) }
    } catch (error) {
      return { choices: [], error: tellError(error) }
    }
  }
  const text = typeof value === 'string' ? value : ''
  const set = (next: string) => edit(() => (next === '' ? undefined : next))
  return (
    <div className="credential">
      <Labelled {...props}>
        <ExpressionInput value={text} onChange={set} />
      </Labelled>
      {!readOnly && (
        <div className="row">
          <Button small busy={busy} onClick={() => run(load)}>
            {result ? 'Load again' : 'Choose from a list'}
          </Button>
          {result && result.choices.length > 0 && (
            <Select
              aria-label={`Choices of ${props.label}`}
              value={result.choices.some((one) => one.value === text) ? text : ''}
              empty={`Choose one of ${result.choices.length}`}
              choices={result.choices}
              onChange={set}
            />
          )}
        </div>
      )}
      {result?.error && <p className="wrong">{result.error}</p>}
      {result && !result.error && result.choices.length === 0 && (
        <p className="help">The service lists none.</p>
      )}
    </div>
  )
}
