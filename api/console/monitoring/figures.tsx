import './figures.css'

type Figure = [name: string, value: string, note?: string | undefined]

/** A few figures that sum up the page. */
export function Figures({ figures }: { figures: Figure[] }) {
  return (
    <dl className="figures">
      {figures.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          {note && <dd className="quiet">{note}</dd>}
        </div>
      ))}
    </dl>
  )
}
