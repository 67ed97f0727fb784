type Props = {
  states?: { address: string; state: string }[] | undefined
  held?: string | null | undefined
}

const WHY: Record<string, string> = {
  ASKED: 'was asked, and has not said yes',
  NOT_ASKED: 'will be asked',
  REFUSED: 'wants no mail',
}

/** The recipients that the mails of a report or a channel do not reach, and why; nothing if they reach all. */
export function MissingYes({ states = [], held }: Props) {
  if (held) return <div className="said">Nothing is sent. {held}</div>
  const missing = states.filter(({ state }) => state !== 'READY')
  if (missing.length === 0) return null
  return (
    <div className="said">
      {missing.map(({ address, state }) => `${address} ${WHY[state] ?? state}`).join('; ')}
    </div>
  )
}
