import { Select } from '../../kit/controls/input.tsx'
import type { GraphNode, NodeEdit } from '../contract.ts'
import type { NodeSchema } from '../schema.ts'
import { useForm } from '../scope.ts'
import { type Edit, editKey } from './field.ts'
import { Labelled } from './leaf.tsx'
import { ValueField } from './value.tsx'

export const ITEM_PATHS = ['perItem', 'allItems', 'itemOptions']

type ItemsProps = { kind: string; schemas: NodeSchema; onEdit: (edit: NodeEdit) => void }

/** How a node works on items: as usual, on each of them, or once on all. */
export function ItemFields({ kind, schemas, onEdit }: ItemsProps) {
  const { node, readOnly } = useForm()
  const way = wayOf(node)
  const edit = (key: keyof GraphNode) => (make: Edit) => onEdit((now) => editKey(now, key, make))
  const choose = (next: string) =>
    onEdit(({ perItem, allItems: _, itemOptions, ...rest }) => ({
      ...rest,
      ...(next === 'each' ? { perItem: perItem || true } : next === 'all' ? { allItems: true } : {}),
      // Without items there is nothing to say about them.
      ...(next !== '' && itemOptions ? { itemOptions } : {}),
    }))
  const path = way === 'all' ? 'allItems' : 'perItem'
  const schema = {
    description:
      'A node that works on items is given those that come to it, and outputs {items}. Each: once for each of them ($item, $index).',
  }
  const calls = schemas.perItem?.anyOf
    ?.flatMap(({ anyOf = [] }) => anyOf)
    .find(({ properties }) => properties)
  const pace = calls?.properties?.concurrency
  const options = schemas.itemOptions?.anyOf?.find(({ properties }) => properties)
  return (
    <div className="fields">
      <Labelled {...{ schema, path, value: way, edit: edit('perItem') }} label="Works on">
        <Select
          disabled={readOnly}
          value={way}
          onChange={choose}
          choices={[
            { value: '', label: 'Its input as it is' },
            { value: 'each', label: 'Each item' },
            ...(kind === 'agent' && way !== 'all' ? [] : [{ value: 'all', label: 'All items at once' }]),
          ]}
        />
      </Labelled>
      {way === 'each' && pace && (kind !== 'pure' || typeof node.perItem === 'object') && (
        <ValueField
          schema={{ ...pace, default: 1 }}
          path="perItem.concurrency"
          label="Calls at the same time"
          value={typeof node.perItem === 'object' ? node.perItem.concurrency : undefined}
          edit={(make) =>
            edit('perItem')((now) => {
              const next = editKey(typeof now === 'object' ? Object(now) : {}, 'concurrency', make)
              return Object.keys(next).length > 0 ? next : true
            })
          }
        />
      )}
      {(way !== '' || node.itemOptions) && options && (
        <ValueField
          schema={{ ...options, description: schemas.itemOptions?.description }}
          path="itemOptions"
          label="Item options"
          value={node.itemOptions}
          edit={edit('itemOptions')}
        />
      )}
    </div>
  )
}

export function wayOf({ perItem, allItems }: GraphNode): '' | 'each' | 'all' {
  return perItem ? 'each' : allItems ? 'all' : ''
}

/** Whether nodes of this type may work on items. */
export function worksOnItems(type: string, kind: string): boolean {
  return ['pure', 'effect', 'agent'].includes(kind) || type === 'SUB_WORKFLOW'
}
