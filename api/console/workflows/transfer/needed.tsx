import { useCredentials } from '../../credentials/data.ts'
import { Field } from '../../kit/controls/field.tsx'
import { Select } from '../../kit/controls/input.tsx'
import { useTeam } from '../../shell/role.tsx'
import type { ImportReport } from './data.ts'

type Needed = ImportReport['credentials'][number]

/** The credentials that were chosen, by what names them in the document. */
export type Chosen = Record<string, string>
export type Choosing = { chosen: Chosen; onChoose: (chosen: Chosen) => void }

/** The credentials of n8n that the nodes of a document need; with `choosing` one of the team's is chosen for each. */
export function NeededCredentials({ needed, choosing }: { needed: Needed[]; choosing?: Choosing }) {
  if (needed.length === 0) return null
  return (
    <section className="panel stack" aria-label="Credentials of n8n">
      <h2>Credentials of n8n</h2>
      <p className="quiet">They never come along. Without one, their nodes send nothing and fail.</p>
      <ul className="needed">
        {needed.map((one) => (
          <li key={JSON.stringify([one.type, one.id, one.name])} className="stack">
            <NeededCredential needed={one} choosing={choosing} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function NeededCredential({ needed, choosing }: { needed: Needed; choosing?: Choosing | undefined }) {
  const { key, name, type, as, accepts, data, enter, nodes, credentialId } = needed
  const title = name ?? type
  return (
    <>
      <p>
        <strong className="said">{title}</strong>{' '}
        {name !== null && <code title="Its type in n8n">{type}</code>}{' '}
        <span className="quiet said">for {nodes.join(', ')}</span>
      </p>
      {accepts.length === 0 ? (
        <p className="said">None can do it here: {enter}</p>
      ) : (
        <p>
          {as === null ? 'Enter' : 'Make one of the type'} {as !== null && <code>{as}</code>}{' '}
          {Object.entries(data).map(([entry, value]) => (
            <span key={entry}>
              <code>{`${entry}: ${value}`}</code>{' '}
            </span>
          ))}
          <span className="said">{enter}</span>
        </p>
      )}
      {choosing && accepts.length > 0 && (
        <Choice
          title={title}
          accepts={accepts}
          value={choosing.chosen[key] ?? ''}
          onChange={(id) => choosing.onChoose(choose(choosing.chosen, key, id))}
        />
      )}
      {!choosing && credentialId !== null && <p className="quiet">Chosen when it was imported</p>}
    </>
  )
}

type ChoiceProps = { title: string; accepts: string[]; value: string; onChange: (id: string) => void }

function Choice({ title, accepts, value, onChange }: ChoiceProps) {
  const { teamId } = useTeam()
  const { data: credentials = [] } = useCredentials(teamId)
  const fitting = credentials.filter((one) => accepts.includes(one.type))
  return (
    <Field label={`Credential for ${title}`}>
      <Select
        value={value}
        onChange={onChange}
        empty={fitting.length === 0 ? 'None here fits: it can be chosen later' : 'None: chosen later'}
        choices={fitting.map(({ id, name, type }) => ({ value: id, label: `${name} (${type})` }))}
      />
    </Field>
  )
}

function choose(chosen: Chosen, key: string, id: string): Chosen {
  const { [key]: _, ...others } = chosen
  return id === '' ? others : { ...others, [key]: id }
}
