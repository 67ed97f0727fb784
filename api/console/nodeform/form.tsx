import { Button } from '../kit/controls/button.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { nameKey } from '../kit/names.ts'
import type { NodeEdit, NodeFault } from './contract.ts'
import type { NodeType } from './data.ts'
import { WebhookAddress } from './fields/address.tsx'
import { ConnectorFields } from './fields/connector.tsx'
import { FAILURE_PATHS, FailureFields, tellFailure } from './fields/failure.tsx'
import { type Edit, editKey } from './fields/field.ts'
import { FormAddress } from './fields/formaddress.tsx'
import { ITEM_PATHS, ItemFields, wayOf, worksOnItems } from './fields/items.tsx'
import { NameFields } from './fields/names.tsx'
import { UnknownKeys } from './fields/unknown.tsx'
import { ValueField } from './fields/value.tsx'
import { flattenConfig, isRecord, type NodeSchema, type Schema } from './schema.ts'
import { faultsAt, useForm } from './scope.ts'
import { Section } from './section.tsx'

type FormProps = {
  nodeType: NodeType
  schemas: NodeSchema
  onEdit: (edit: NodeEdit) => void
  onRename: (id: string) => void
}

/** The form of a node: its name, its main settings, its options, its items, and what is done when it fails. */
export function NodeForm({ nodeType, schemas, onEdit, onRename }: FormProps) {
  const { node, faults, readOnly } = useForm()
  const { kind } = nodeType
  const { properties = {}, required: due = [] } = flattenConfig(nodeType.config as Schema)
  const { main, more } = groupKeys(nodeType, Object.keys(properties), due, node.config)
  const set = more.filter((key) => node.config[key] !== undefined)
  const isWrong = (path: string) => faultsAt(faults, path).length > 0
  const editConfig = (make: Edit) =>
    onEdit((now) => {
      const config = make(now.config)
      return isRecord(config) ? { ...now, config } : now
    })
  const field = (key: string) => (
    <ValueField
      key={key}
      schema={properties[key]!}
      path={`config.${key}`}
      label={nameKey(key)}
      required={due.includes(key)}
      value={node.config[key]}
      edit={(make) => editConfig((config) => editKey(Object(config), key, make))}
    />
  )
  return (
    <div className="fields">
      <NameFields onEdit={onEdit} onRename={onRename} />
      <OtherFaults known={Object.keys(properties)} />
      <UnknownKeys held={node.config} known={Object.keys(properties)} path="config" edit={editConfig} />
      {node.type === 'WEBHOOK_TRIGGER' && <WebhookAddress />}
      {node.type === 'FORM_TRIGGER' && <FormAddress />}
      {node.type === 'CONNECTOR' ? (
        <ConnectorFields
          schemas={properties}
          edit={editConfig}
          credential={field('credentialId')}
          others={['action', 'input'].map(field)}
        />
      ) : (
        main.map(field)
      )}
      {main.length + more.length === 0 && <p className="quiet">There is nothing to set here.</p>}
      {more.length > 0 && (
        <Section
          title="Options"
          note={set.length > 0 ? `${set.length} set` : ''}
          open={set.length > 0 || more.some((key) => isWrong(`config.${key}`))}
        >
          <div className="fields">{more.map(field)}</div>
        </Section>
      )}
      {(worksOnItems(node.type, kind) || wayOf(node) !== '') && (
        <Section
          title="Items"
          note={{ '': '', each: 'on each item', all: 'on all items' }[wayOf(node)]}
          open={ITEM_PATHS.some(isWrong)}
        >
          <ItemFields kind={kind} schemas={schemas} onEdit={onEdit} />
        </Section>
      )}
      {kind !== 'trigger' && (
        <Section title="When it fails" note={tellFailure(node)} open={FAILURE_PATHS.some(isWrong)}>
          <FailureFields defaults={nodeType} schemas={schemas} onEdit={onEdit} />
        </Section>
      )}
      {kind === 'trigger' && node.disabled && !readOnly && (
        <Button small onClick={() => onEdit((now) => editKey(now, 'disabled', () => undefined))}>
          Enable it
        </Button>
      )}
    </div>
  )
}

/** The keys of a config that most people set, in their order, and the others. */
function groupKeys(
  { main, mainBy }: NodeType,
  all: string[],
  due: readonly string[],
  config: Record<string, unknown>,
) {
  const by = mainBy?.keys[String(config[mainBy.key] ?? '')] ?? []
  const first = [...new Set([...main, ...by, ...due])].filter((key) => all.includes(key))
  return { main: first, more: all.filter((key) => !first.includes(key)) }
}

/** Faults that no field shows. */
function OtherFaults({ known }: { known: string[] }) {
  const { node, faults } = useForm()
  const keys = [...known, ...Object.keys(node.config)].map((key) => `config.${key}`)
  const shown = [...FAILURE_PATHS, ...ITEM_PATHS, 'id', 'name', ...keys]
  const rest = faults.filter((one) => !shown.some((path) => faultsAt([one], path).length > 0))
  if (rest.length === 0) return null
  return (
    <div className="others">
      {rest.map((one) => (
        <Fault key={`${one.path} ${one.message}`} fault={one} />
      ))}
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
