import { type DragEvent, useId, useState } from 'react'
import { Refusal } from '../../data/refusal.ts'
import { Graph } from '../../graph/graph.tsx'
import type { DrawnEdge, DrawnNode } from '../../graph/lines.ts'
import type { Note } from '../../graph/notes.ts'
import { go } from '../../kit/address.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { TextArea, TextInput } from '../../kit/controls/input.tsx'
import { PageHeader } from '../../kit/header.tsx'
import { notify } from '../../kit/notices.tsx'
import { Empty, Refused } from '../../kit/states.tsx'
import { useWork } from '../../kit/work.ts'
import { useRole, useTeam } from '../../shell/role.tsx'
import { type ImportPlan, importWorkflow, planImport } from './data.ts'
import type { Choosing, Chosen } from './needed.tsx'
import { Report, useReportMarks } from './report.tsx'
import '../workflows.css'

/** Brings a workflow in, of Perdure or n8n: first shows what would become of it, then makes it. */
export function ImportPage() {
  const { teamId } = useTeam()
  const may = useRole()
  const [text, setText] = useState('')
  const [name, setName] = useState('')
  const [plan, setPlan] = useState<ImportPlan | null>(null)
  const [chosen, setChosen] = useState<Chosen>({})
  const { busy, error, run } = useWork()
  const crumbs: [string, string][] = [['Workflows', '/workflows']]
  if (!may('BUILDER')) {
    return (
      <>
        <PageHeader title="Import a workflow" crumbs={crumbs} />
        <Empty title="Not yours to make" text="A BUILDER or an ADMIN of the team imports workflows." />
      </>
    )
  }
  const look = (given: string) =>
    run(async () => {
      setPlan(null)
      setChosen({})
      setPlan(await planImport({ teamId, workflow: readDocument(given) }))
    })
  const choose = (credentials: Chosen) =>
    run(async () => {
      setChosen(credentials)
      setPlan(await planImport({ teamId, workflow: readDocument(text), credentials }))
    })
  const take = (given: string) => {
    setText(given)
    void look(given)
  }
  const make = () =>
    run(async () => {
      const made = await importWorkflow({
        teamId,
        workflow: readDocument(text),
        credentials: chosen,
        ...(name ? { name } : {}),
      })
      notify(`Imported: ${made.name}`)
      go(`/workflows/${made.id}`)
    })
  return (
    <>
      <PageHeader
        title="Import a workflow"
        crumbs={crumbs}
        lead="An export of Perdure, an export of n8n, or the JSON that n8n's editor copies. Nothing is made before you have seen what becomes of it."
      />
      <Given
        text={text}
        onText={(next) => {
          setText(next)
          setPlan(null)
        }}
        onFile={take}
      />
      <Refused error={error} />
      {plan ? (
        <>
          <div className="filters">
            <Field label="Name">
              <TextInput value={name} maxLength={200} placeholder={plan.name} onChange={setName} />
            </Field>
            <Button look="primary" busy={busy} onClick={() => void make()}>
              Import
            </Button>
          </div>
          <Planned plan={plan} choosing={{ chosen, onChoose: (next) => void choose(next) }} />
        </>
      ) : (
        <Button look="primary" busy={busy} disabled={text.trim() === ''} onClick={() => void look(text)}>
          See what becomes of it
        </Button>
      )}
    </>
  )
}

type GivenProps = { text: string; onText: (text: string) => void; onFile: (text: string) => void }

function Given({ text, onText, onFile }: GivenProps) {
  const id = useId()
  const [over, setOver] = useState(false)
  const read = (file: File | undefined) => void file?.text().then(onFile)
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    read(event.dataTransfer.files[0])
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the field in it does the same by keyboard
    <div
      className={over ? 'panel stack given over' : 'panel stack given'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div className="field">
        <label htmlFor={id}>File</label>
        <input
          id={id}
          className="input"
          type="file"
          accept=".json,application/json"
          onChange={(event) => read(event.target.files?.[0])}
        />
      </div>
      <Field label="Or paste the document">
        <TextArea code rows={text ? 5 : 8} value={text} onChange={onText} placeholder='{ "nodes": … }' />
      </Field>
    </div>
  )
}

function Planned({ plan, choosing }: { plan: ImportPlan; choosing: Choosing }) {
  const marks = useReportMarks(plan.report)
  const { nodes, edges, settings } = plan as {
    nodes: DrawnNode[]
    edges: DrawnEdge[]
    settings: { notes?: Note[] }
  }
  const graph = { nodes, edges, notes: settings.notes }
  return (
    <>
      <Report report={plan.report} choosing={choosing} />
      <Graph graph={graph} label="Graph after the import" marks={marks} />
    </>
  )
}

function readDocument(text: string): object {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw new Refusal(400, `This is not JSON: ${(error as Error).message}`)
  }
  if (typeof document !== 'object' || document === null) throw new Refusal(400, 'This is no workflow')
  return document
}
