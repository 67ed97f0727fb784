import { type FormEvent, useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextArea, TextInput } from '../kit/controls/input.tsx'
import type { DataColumn } from './data.ts'
import { YES_NO } from './row.tsx'
import './tables.css'
import { type Condition, hasValue, listOps, type Op, readWhere, writeWhere } from './values.ts'

type FilterProps = {
  columns: readonly DataColumn[]
  where: string
  match: string
  /** Why the rows were refused: what is wrong with a condition is said at its field. */
  error: unknown
  onApply: (where: string, match: string) => void
}

type Draft = Condition & { key: number }

const MATCHES = [
  { value: '', label: 'All conditions hold' },
  { value: 'any', label: 'Any condition holds' },
]
const MOST = 20

/** Conditions that rows must fulfil. They count once they are applied, and stand in the address. */
export function RowFilter({ columns, where, match: given, error, onApply }: FilterProps) {
  const [drafts, setDrafts] = useState<Draft[]>(() =>
    readWhere(where).map((condition, key) => ({ ...condition, key })),
  )
  const [match, setMatch] = useState(given)
  const [made, setMade] = useState(drafts.length)
  const add = () => {
    setDrafts([...drafts, { ...startOn(columns[0]!), key: made }])
    setMade(made + 1)
  }
  const change = (at: number, next: Condition) =>
    setDrafts(drafts.map((one, index) => (index === at ? { ...one, ...next } : one)))
  const apply = (event: FormEvent) => {
    event.preventDefault()
    onApply(writeWhere(columns, drafts), match)
  }
  return (
    <form className="stack table-conditions" aria-label="Conditions" onSubmit={apply}>
      {drafts.map((draft, at) => (
        <ConditionFields
          key={draft.key}
          place={at + 1}
          columns={columns}
          condition={draft}
          error={problemAt(error, `where[${at}]`)}
          onChange={(next) => change(at, next)}
          onRemove={() => setDrafts(drafts.filter((_, index) => index !== at))}
        />
      ))}
      <div className="row">
        {drafts.length < MOST && (
          <Button small icon="filter" onClick={add}>
            Add a condition
          </Button>
        )}
        {(drafts.length > 0 || where) && (
          <Button small type="submit" look="primary">
            Apply
          </Button>
        )}
        {where && (
          <Button small onClick={() => onApply('', '')}>
            Clear
          </Button>
        )}
        {drafts.length > 1 && (
          <Field label="Which conditions must hold" hideLabel>
            <Select value={match} onChange={setMatch} choices={MATCHES} />
          </Field>
        )}
      </div>
    </form>
  )
}

function startOn({ name, type }: DataColumn): Condition {
  return { column: name, op: listOps(type)[0]!.value, text: type === 'boolean' ? 'true' : '' }
}

type ConditionProps = {
  place: number
  columns: readonly DataColumn[]
  condition: Condition
  error: string | undefined
  onChange: (next: Condition) => void
  onRemove: () => void
}

function ConditionFields({ place, columns, condition, error, onChange, onRemove }: ConditionProps) {
  const { column, op, text } = condition
  const found = columns.find(({ name }) => name === column)
  const type = found?.type ?? 'text'
  const choices = columns.map(({ name }) => ({ value: name, label: name }))
  const ops = listOps(type)
  const change = (next: string) => onChange({ ...condition, text: next })
  return (
    <div className="filters">
      <Field label={`Column ${place}`}>
        <Select
          value={column}
          choices={found ? choices : [...choices, { value: column, label: column }]}
          onChange={(name) => onChange(startOn(columns.find((one) => one.name === name) ?? columns[0]!))}
        />
      </Field>
      <Field label={`Operator ${place}`} error={hasValue(op) ? undefined : error}>
        <Select value={op} choices={ops} onChange={(next) => onChange({ ...condition, op: next as Op })} />
      </Field>
      {hasValue(op) && (
        <Field label={op === 'in' ? `Values ${place}, one a line` : `Value ${place}`} error={error}>
          {type === 'boolean' ? (
            <Select value={text} choices={YES_NO} onChange={change} />
          ) : op === 'in' ? (
            <TextArea value={text} rows={2} onChange={change} />
          ) : (
            <TextInput value={text} onChange={change} />
          )}
        </Field>
      )}
      <Button icon="close" look="plain" aria-label={`Remove condition ${place}`} onClick={onRemove} />
    </div>
  )
}
