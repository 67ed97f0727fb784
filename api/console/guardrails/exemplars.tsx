import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { readPage, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Select, TextArea } from '../kit/controls/input.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Loaded, Refused } from '../kit/states.tsx'
import { nameConstant, Pill } from '../kit/status.tsx'
import { Managed } from '../kit/tables/managed.tsx'
import { ManagedForm } from '../kit/tables/managedform.tsx'
import { Pager } from '../kit/tables/pager.tsx'
import { Age } from '../kit/time.tsx'
import { useWork } from '../kit/work.ts'
import { useRole, useTeam } from '../shell/role.tsx'
import { CATEGORIES, checkText, deleteExemplar, type Exemplar, saveExemplar, useExemplars } from './data.ts'

/** Texts of the team whose meaning checks look for. */
export function Exemplars() {
  const { teamId } = useTeam()
  const mayChange = useRole()('BUILDER')
  const confirm = useConfirm()
  const [query, , linkTo] = useQueryState({ tab: 'playground', page: '' })
  const found = useExemplars(teamId, readPage(query.page))
  const [edited, setEdited] = useState<Exemplar | 'new' | null>(null)
  const remove = ({ id, name }: Exemplar) =>
    confirm({
      title: `Delete ${name}?`,
      text: 'Texts that mean the same are not found by it any more. This cannot be undone.',
      label: 'Delete the exemplar',
      danger: true,
      work: () => deleteExemplar(id),
    })

  return (
    <div className="stack">
      <Loaded query={found}>
        {(list) => (
          <>
            <Managed
              label="Exemplars"
              rows={list.content}
              mayChange={mayChange}
              empty={{
                title: 'No exemplars',
                text: 'An exemplar is a text such as attacks on your agents. Checks for texts that mean what known attacks mean find what means the same, in other words.',
              }}
              add={{ label: 'New exemplar', onClick: () => setEdited('new') }}
              columns={[
                {
                  heading: 'Exemplar',
                  cell: ({ name, text }) => (
                    <>
                      <span className="name">{name}</span>
                      <div className="quiet said">{text}</div>
                    </>
                  ),
                },
                { heading: 'Category', cell: ({ category }) => nameConstant(category) },
                { heading: 'Changed', cell: ({ updatedAt }) => <Age at={updatedAt} /> },
              ]}
              menu={(exemplar) => [
                { label: 'Edit', icon: 'edit', onClick: () => setEdited(exemplar) },
                { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(exemplar) },
              ]}
            />
            <Pager page={list} linkTo={(number) => linkTo({ page: number })} />
            {list.totalElements > 0 && <Trial teamId={teamId} />}
          </>
        )}
      </Loaded>
      {edited && (
        <ExemplarDialog
          key={edited === 'new' ? 'new' : edited.id}
          teamId={teamId}
          exemplar={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
        />
      )}
    </div>
  )
}

type DialogProps = { teamId: string; exemplar: Exemplar | null; onClose: () => void }

function ExemplarDialog({ teamId, exemplar, onClose }: DialogProps) {
  const [category, setCategory] = useState(exemplar?.category ?? 'other')
  const [text, setText] = useState(exemplar?.text ?? '')
  const save = async (name: string) => {
    await saveExemplar(teamId, exemplar?.id, { name, category, text })
    return 'Saved: the next check looks for it'
  }
  return (
    <ManagedForm noun="exemplar" thing={exemplar} onClose={onClose} save={save} fields={['category', 'text']}>
      {(error) => (
        <>
          <Field
            label="Category"
            help="What such texts are up to. Violations tell it."
            error={problemAt(error, 'category')}
          >
            <Select
              value={category}
              onChange={(next) => setCategory(next as typeof category)}
              choices={CATEGORIES.map((value) => ({ value, label: nameConstant(value) }))}
            />
          </Field>
          <Field
            label="Text"
            required
            help="English, of one or a few sentences. Each counts by itself, so leave out greetings."
            error={problemAt(error, 'text')}
          >
            <TextArea value={text} onChange={setText} required rows={4} maxLength={2_000} />
          </Field>
        </>
      )}
    </ManagedForm>
  )
}

type Tried = Awaited<ReturnType<typeof checkText>>

/** What the exemplars, and those that come with the service, find in a text. */
function Trial({ teamId }: { teamId: string }) {
  const [text, setText] = useState('')
  const { busy, result, error, run } = useWork<Tried>()
  const compare = () => checkText(teamId, { text, detectSemanticManipulation: true })
  return (
    <section className="panel stack" aria-label="Try it out">
      <Field label="Try a text out" help="Nothing is stored. The first check takes a few seconds.">
        <TextArea value={text} onChange={setText} rows={2} />
      </Field>
      <div className="row">
        <Button busy={busy} disabled={text.trim() === ''} onClick={() => run(compare)}>
          Compare
        </Button>
        <span role="status">{result && <Outcome {...result} />}</span>
      </div>
      <Refused error={error} />
    </section>
  )
}

function Outcome({ violations, checks }: Tried) {
  const failed = checks.find(({ error }) => error !== undefined)
  if (failed) return <span className="failure">{failed.error}</span>
  const [first] = violations
  if (!first) return <Pill tone="good">Nothing means the same</Pill>
  const { similarity, exemplarName } = first.details
  return (
    <>
      <Pill tone="bad">Means the same</Pill> as {String(exemplarName)}
      <span className="quiet">, similarity {Number(similarity).toFixed(2)}</span>
    </>
  )
}
