import { useRef, useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Tabs } from '../kit/controls/tabs.tsx'
import { nameType } from '../kit/names.ts'
import { Loaded } from '../kit/states.tsx'
import type { GraphNode, NodeEdit, NodePanelProps } from './contract.ts'
import { type NodeType, useNodeTypes, useWorkflowSchema } from './data.ts'
import { JsonInput } from './fields/json.tsx'
import { NodeForm } from './form.tsx'
import './nodeform.css'
import { usePlace } from './run.ts'
import { isRecord, type NodeSchema } from './schema.ts'
import { FormContext, type Taker } from './scope.ts'
import { InputTree } from './tree.tsx'

/** The side panel for one node: its form, the same as JSON, and beside it what it can read. */
export function NodePanel(props: NodePanelProps) {
  const { node, onRename, onClose } = props
  const types = useNodeTypes()
  const schemas = useWorkflowSchema()
  const [body, setBody] = useState({ id: node.id, turn: 0 })
  // Another node begins afresh. One that is renamed here is still the same: what is open stays open.
  if (body.id !== node.id) setBody({ id: node.id, turn: body.turn + 1 })
  const rename = (id: string) => {
    setBody({ ...body, id })
    onRename(id)
  }
  return (
    <aside className="node-panel" aria-label={`Settings of ${node.name || node.id}`}>
      <Loaded query={types}>
        {(all) => (
          <Body
            key={body.turn}
            {...props}
            onRename={rename}
            schemas={(schemas.data?.node.properties ?? {}) as NodeSchema}
            nodeType={all.find(({ type }) => type === node.type)}
          />
        )}
      </Loaded>
      {!types.data && <Close onClose={onClose} />}
    </aside>
  )
}

function Close({ onClose }: { onClose: () => void }) {
  return <Button small look="plain" icon="close" aria-label="Close the settings" onClick={onClose} />
}

type BodyProps = NodePanelProps & {
  schemas: NodeSchema
  nodeType: NodeType | undefined
}

function Body({ schemas, onEdit, onRename, onClose, onExecuteTo, nodeType, ...given }: BodyProps) {
  const { teamId, workflowId, node, graph, faults, readOnly } = given
  const [view, setView] = useState('form')
  const [hasTree, setTree] = useState(
    () => nodeType?.kind !== 'trigger' && matchMedia('(width >= 700px)').matches,
  )
  const taker = useRef<Taker | null>(null)
  const { data: place, isLoading, error } = usePlace(teamId, workflowId, node, graph.edges)
  const uses = nodeType?.credentialUses ?? []
  const scope = { teamId, workflowId, node, graph, faults, readOnly, uses, place, taker }
  const json = <NodeJson node={node} onEdit={onEdit} />
  return (
    <FormContext value={scope}>
      <div className={hasTree ? 'node-body with-tree' : 'node-body'}>
        {hasTree && (
          <section className="node-input" aria-label="Input">
            <h2>Input</h2>
            <InputTree isPending={isLoading} error={error} />
          </section>
        )}
        <div className="node-main">
          <header className="node-header">
            <h2>{node.name || nameType(node.type)}</h2>
            <div className="row">
              {onExecuteTo && (
                <Button small icon="play" onClick={onExecuteTo}>
                  {node.parentId ? 'Execute to its loop' : 'Execute to here'}
                </Button>
              )}
              <Button small look="plain" aria-expanded={hasTree} onClick={() => setTree(!hasTree)}>
                {hasTree ? 'Hide input' : 'Show input'}
              </Button>
              <Close onClose={onClose} />
            </div>
          </header>
          <p className="node-summary quiet">
            {nodeType?.summary ?? `There is no type ${node.type}: it stands here as JSON.`}
          </p>
          {nodeType ? (
            <Tabs
              label="Views of the node"
              value={view}
              onChange={setView}
              tabs={[
                {
                  id: 'form',
                  label: 'Form',
                  content: <NodeForm nodeType={nodeType} {...{ schemas, onEdit, onRename }} />,
                },
                { id: 'json', label: 'JSON', content: json },
              ]}
            />
          ) : (
            json
          )}
        </div>
      </div>
    </FormContext>
  )
}

/** The same node as JSON, but for its place on the canvas. */
function NodeJson({ node, onEdit }: { node: GraphNode; onEdit: (edit: NodeEdit) => void }) {
  const { position: _, ...shown } = node
  const take = (value: unknown) => {
    if (isNode(value)) onEdit(({ position }) => ({ ...value, ...(position ? { position } : {}) }))
  }
  return (
    <JsonInput
      label="The node as JSON"
      lines={36}
      value={shown}
      onChange={take}
      refuse={(value) => {
        if (!isNode(value)) return 'A node has an id, a type, and a config that is an object.'
        return value.id === node.id ? undefined : 'Change the id in the form: edges name the node by it.'
      }}
    />
  )
}

function isNode(value: unknown): value is GraphNode {
  return (
    isRecord(value) &&
    typeof value.id === 'string' &&
    typeof value.type === 'string' &&
    isRecord(value.config)
  )
}
