import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { Refused } from '../kit/states.tsx'
import { Time } from '../kit/time.tsx'
import { useWork } from '../kit/work.ts'
import { keep, recall } from '../shell/theme.ts'
import { type Noted, type Verification, verifyAudit } from './data.ts'

type ProblemKind = NonNullable<Verification['problem']>['kind']

const SAID: Record<ProblemKind, string> = {
  entry_modified: 'What the entry says is no longer what was signed.',
  entry_forged: 'The entry was rewritten together with its hash, without the key.',
  entry_unsigned: 'The entry has no signature, although it must have one.',
  range_modified: 'Entries without signatures are no longer those that were noted.',
  details_missing: 'The details of the entry are gone, and nothing says that they were erased.',
  link_broken: 'The entry does not link to the one before it.',
  gap: 'Entries are missing before this one.',
  fork: 'Two entries have the same number.',
  tail_truncated: 'The newest entries are missing.',
  head_mismatch: 'The head of the chain is not that of its last entry.',
  head_missing: 'The head of the chain is missing.',
  head_mac_invalid: 'The head of the chain is not signed with a key of this installation.',
  segment_modified: 'Entries before a break are no longer what they were when the chain was reopened.',
  checkpoint_mismatch:
    'The entry that was noted or signed as a checkpoint is not in the chain: it was cut back.',
  checkpoint_invalid: 'A checkpoint is not signed by this installation.',
  checkpoint_missing: 'There are fewer or more checkpoints than were signed.',
  anchor_invalid: 'A purge was not signed by this installation.',
  anchor_missing: 'What was signed of a purge is gone.',
  key_invalid: 'A public key is not the one that this installation has kept.',
  team_mismatch: 'The chain was closed, but the team is there.',
}

type Checked = { found: Verification; noted: Noted | null }

/** The button that verifies the chain, and what came of it, for the page around them. */
export function useVerdict(teamId: string) {
  const { busy, result: checked, error, run } = useWork<Checked>({ keep: true })
  const check = (noted: Noted | null) =>
    run(async () => {
      const found = await verifyAudit(teamId, noted)
      if (found.valid && found.last) note(teamId, found.last)
      return { found, noted }
    })
  const button = (
    <Button look="primary" icon="check" busy={busy} onClick={() => check(readNoted(teamId))}>
      Verify the chain
    </Button>
  )
  const verdict = (
    <div aria-live="polite">
      <Refused error={error} />
      {checked && <Verdict {...checked} onForget={() => check(null)} />}
    </div>
  )
  return { button, verdict }
}

type VerdictProps = Checked & { onForget: () => void }

function Verdict({ found, noted, onForget }: VerdictProps) {
  const { valid, problem, last } = found
  return (
    <section className={valid ? 'verdict good' : 'verdict bad'} aria-label="Verdict">
      <Icon name={valid ? 'check' : 'warning'} size={22} />
      <div className="stack">
        <h2>
          {valid
            ? 'The chain is intact'
            : problem?.seq != null
              ? `The chain is broken at entry ${problem.seq}`
              : 'The chain is broken'}
        </h2>
        {problem && <p>{SAID[problem.kind]}</p>}
        <ul>
          <li>
            {found.entriesVerified.toLocaleString()} entries were checked <Time at={found.verifiedAt} />
            {found.firstEntry && (
              <>
                {', from '}
                <Time at={found.firstEntry} /> to <Time at={found.lastEntry} />
              </>
            )}
          </li>
          {found.brokenAtTimestamp && (
            <li>
              What is wrong is of <Time at={found.brokenAtTimestamp} />
            </li>
          )}
          {found.intactFrom > 1 && (
            <li>Entries before {found.intactFrom} were purged; a signed anchor says so</li>
          )}
          {found.erased > 0 && <li>{found.erased} entries are without details, because they were erased</li>}
          {found.breaks.map(({ seq, at }) => (
            <li key={seq}>
              Reopened at entry {seq} after it was tampered with, <Time at={at} />
            </li>
          ))}
          {noted && found.noted === 'found' && (
            <li>Entry {noted.seq}, which this browser had noted, is still there</li>
          )}
          {last && (
            <li>
              The last entry is {last.seq}, <code>{last.hash.slice(0, 16)}…</code>
              <CopyButton text={`${last.seq} ${last.hash}`} label="Copy the last entry's number and hash" />
            </li>
          )}
        </ul>
        {noted && found.noted === 'missing' && (
          <div className="row">
            <span>
              This browser has noted entry {noted.seq}, and it is missing: the chain was cut back, or the
              service was restored from an older backup.
            </span>
            <Button small onClick={onForget}>
              Verify without it
            </Button>
          </div>
        )}
      </div>
    </section>
  )
}

/** The last entry of a chain that was intact is kept in the browser, so that a chain that is cut back is found out. */
const keyOf = (teamId: string) => `perdure audit ${teamId}`

function note(teamId: string, { seq, hash }: Noted): void {
  keep(keyOf(teamId), `${seq} ${hash}`)
}

function readNoted(teamId: string): Noted | null {
  const [seq, hash] = (recall(keyOf(teamId)) ?? '').split(' ')
  return /^\d+$/.test(seq ?? '') && hash ? { seq: Number(seq), hash } : null
}
