import { useState } from 'react'
import { Button } from '../kit/button.tsx'
import { Field } from '../kit/field.tsx'
import { Icon } from '../kit/icon.tsx'
import { TextInput } from '../kit/input.tsx'
import { WebhookAddress } from './address.tsx'
import type { GraphNode, NodeFault, Retry } from './contract.ts'
import { FailureFields, setField } from './failure.tsx'
import { setKey } from './object.tsx'
import type { Schema } from './schema.ts'
import { faultsAt, tellFaults, useForm } from './scope.ts'
import { ValueField } from './value.tsx'
import { groupKeys, labelFor } from './words.ts'

export type NodeType = {
  type: string
  kind: string
  summary: string
  retry: Required<Retry>
  timeoutMs: number
  config: Schema
}

type FormProps = { nodeType: NodeType; onChange: (node: GraphNode) => void }

const FAILURE_PATHS = ['onError', 'retry', 'timeoutMs', 'disabled']

/** The form of a node: its name, its main settings, its options, and what is done when it fails. */
export function NodeForm({ nodeType, onChange }: FormProps) {
  const { node, faults, readOnly } = useForm()
  const schema = nodeType.config
  const properties = schema.properties ?? {}
  const { main, more } = groupKeys(node.type, schema, node.config)
  const setConfig = (key: string, value: unknown) =>
    onChange({ ...node, config: setKey(node.config, key, value) })
  const set = more.filter((key) => node.config[key] !== undefined)
  const isTrigger = nodeType.kind === 'trigger'
  const failing = FAILURE_PATHS.some((path) => faultsAt(faults, path).length > 0)
  const field = (key: string) => (
    <ValueField
      key={key}
      schema={properties[key]!}
      path={`config.${key}`}
      label={labelFor(key)}
      required={schema.required?.includes(key) ?? false}
      value={node.config[key]}
      onChange={(value) => setConfig(key, value)}
    />
  )
  return (
    <div className="fields">
      <NameFields onChange={onChange} />
      <Others properties={Object.keys(properties)} onChange={onChange} />
      {node.type === 'WEBHOOK_TRIGGER' && <WebhookAddress />}
      {main.map(field)}
      {main.length + more.length === 0 && <p className="quiet">There is nothing to set here.</p>}
      {more.length > 0 && (
        <Section
          title="Options"
          note={set.length > 0 ? `${set.length} set` : ''}
          open={set.length > 0 || more.some((key) => faultsAt(faults, `config.${key}`).length > 0)}
        >
          <div className="fields">{more.map(field)}</div>
        </Section>
      )}
      {!isTrigger && (
        <Section title="When it fails" note={tellFailure(node)} open={failing}>
          <FailureFields defaults={nodeType} onChange={onChange} />
        </Section>
      )}
      {isTrigger && node.disabled && !readOnly && (
        <Button small onClick={() => onChange(setField(node, 'disabled', undefined))}>
          Enable it
        </Button>
      )}
    </div>
  )
}

/** What of it is not as usual, for the closed section. */
function tellFailure({ onError, retry, disabled }: GraphNode): string {
  const said = [
    disabled ? 'disabled' : '',
    onError === 'CONTINUE' ? 'goes on' : onError === 'BRANCH' ? 'output “error”' : '',
    retry?.maxAttempts ? `${retry.maxAttempts} ${retry.maxAttempts === 1 ? 'attempt' : 'attempts'}` : '',
  ]
  return said.filter(Boolean).join(', ')
}

type SectionProps = { title: string; note: string; open: boolean; children: React.ReactNode }

/** It opens for what is set or wrong in it, and stays as one has left it. */
function Section({ title, note, open, children }: SectionProps) {
  const [chosen, setChosen] = useState<boolean | null>(null)
  const isOpen = chosen ?? open
  return (
    <details className="section" open={isOpen}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary
        onClick={(event) => {
          event.preventDefault()
          setChosen(!isOpen)
        }}
      >
        {title} {note && <span className="quiet">{note}</span>}
      </summary>
      {isOpen && children}
    </details>
  )
}

/** The id is what expressions name it by, so it changes when it is whole. */
function NameFields({ onChange }: { onChange: (node: GraphNode) => void }) {
  const { node, graph, faults, readOnly } = useForm()
  const [id, setId] = useState(node.id)
  const taken = id !== node.id && graph.nodes.some((one) => one.id === id)
  const broken = !/^[A-Za-z0-9_-]{1,100}$/.test(id)
  const wrong = taken
    ? 'Another node has this id'
    : broken
      ? 'An id has 1 to 100 letters, digits, _ or -'
      : tellFaults(faultsAt(faults, 'id'))
  const settle = () => {
    if (id !== node.id && !taken && !broken) onChange({ ...node, id })
  }
  return (
    <div className="pairs">
      <Field label="Name" error={tellFaults(faultsAt(faults, 'name'))}>
        <TextInput
          maxLength={200}
          readOnly={readOnly}
          value={node.name ?? ''}
          onChange={(name) => onChange(setField(node, 'name', name === '' ? undefined : name))}
        />
      </Field>
      <Field label="Id" error={wrong}>
        <TextInput
          maxLength={100}
          spellCheck={false}
          readOnly={readOnly}
          value={id}
          onChange={setId}
          onBlur={settle}
          onKeyDown={(event) => event.key === 'Enter' && settle()}
        />
      </Field>
    </div>
  )
}

/** Faults that no field shows, and keys that nobody reads. */
function Others({ properties, onChange }: { properties: string[]; onChange: (node: GraphNode) => void }) {
  const { node, faults, readOnly } = useForm()
  const unknown = Object.keys(node.config).filter((key) => !properties.includes(key))
  const shown = [...FAILURE_PATHS, 'id', 'name']
  const rest = faults.filter(
    (one) =>
      !shown.some((path) => faultsAt([one], path).length > 0) &&
      ![...properties, ...unknown].some((key) => faultsAt([one], `config.${key}`).length > 0),
  )
  if (rest.length + unknown.length === 0) return null
  const rename = (key: string, to: string) => {
    const entries = Object.entries(node.config).map(([one, value]) => [one === key ? to : one, value])
    onChange({ ...node, config: Object.fromEntries(entries) })
  }
  return (
    <div className="others">
      {rest.map((one) => (
        <Fault key={`${one.path} ${one.message}`} fault={one} />
      ))}
      {unknown.map((key) => {
        const said = tellFaults(faultsAt(faults, `config.${key}`))
        const similar = suggestKey(said ?? '', key, properties)
        return (
          <div key={key} className="other" role="status">
            <p>
              <Icon name="warning" size={13} /> {said ?? `The key “${key}” is unknown here, and left out.`}
            </p>
            {!readOnly && (
              <div className="row">
                {similar && !(similar in node.config) && (
                  <Button small onClick={() => rename(key, similar)}>{`Rename it to ${similar}`}</Button>
                )}
                <Button
                  small
                  onClick={() => onChange({ ...node, config: setKey(node.config, key, undefined) })}
                >
                  {`Remove ${key}`}
                </Button>
              </div>
            )}
          </div>
        )
      })}
    </div>
  )
}

function Fault({ fault }: { fault: NodeFault }) {
  return (
    <p className={fault.warning ? 'other' : 'other bad'} role="status">
      <Icon name={fault.warning ? 'info' : 'warning'} size={13} /> {fault.path && <code>{fault.path}</code>}{' '}
      {fault.message}
    </p>
  )
}

/** What the API suggests; before it was asked, a key with the same letters. */
function suggestKey(said: string, key: string, known: string[]): string | undefined {
  const named = /did you mean "([^"]+)"/.exec(said)?.[1]
  if (named && known.includes(named)) return named
  const letters = (text: string) => [...text.toLowerCase()].sort().join('')
  return known.find((one) => letters(one) === letters(key) || one.toLowerCase() === key.toLowerCase())
}
