import { useState } from 'react'
import { problemsOf } from '../../data/refusal.ts'
import { Field } from '../../kit/controls/field.tsx'
import { DateInput, NumberInput, Select, TextInput } from '../../kit/controls/input.tsx'
import { notify } from '../../kit/notices.tsx'
import { useConfirm } from '../../kit/overlays/confirm.tsx'
import { FormDialog } from '../../kit/overlays/dialog.tsx'
import { Loaded } from '../../kit/states.tsx'
import { Managed } from '../../kit/tables/managed.tsx'
import { formatMoney, Time, ZONE } from '../../kit/time.tsx'
import { useRole, useTeam } from '../../shell/role.tsx'
import { MODEL_PROVIDERS, type Price, updatePrices, usePrices } from './data.ts'

/** What the team pays for models of its own, or by its own contract. */
export function PricesView() {
  const { teamId } = useTeam()
  const mayChange = useRole()('ADMIN')
  const confirm = useConfirm()
  const found = usePrices(teamId)
  const all = found.data ?? []
  const [edited, setEdited] = useState<number | null>(null)
  const remove = (at: number) =>
    confirm({
      title: `Delete the price of ${all[at]?.model}?`,
      text: 'Calls from now on cost what the price list of the service says, or an unknown amount. Earlier calls keep their cost.',
      label: 'Delete the price',
      danger: true,
      work: () => updatePrices(teamId, all.toSpliced(at, 1)),
    })
  return (
    <div className="stack">
      <p className="quiet">
        US dollars for a million tokens. They count for calls that begin after a change, before the price list
        of the service.
      </p>
      <Loaded query={found} rows={3}>
        {(prices) => (
          <Managed
            label="Prices"
            rows={prices.map((price, at) => ({ ...price, at, id: String(at), name: price.model }))}
            mayChange={mayChange}
            empty={{
              title: 'No prices of its own',
              text: 'The price list of the service counts. Give prices here to models that it does not know, such as your own, or by your contract.',
            }}
            add={{ label: 'New price', onClick: () => setEdited(prices.length) }}
            columns={[
              {
                heading: 'Model',
                cell: ({ model, provider }) => (
                  <>
                    <code className="name">{model}</code>
                    <div className="quiet">
                      {provider === null ? 'Any provider' : (MODEL_PROVIDERS[provider] ?? provider)}
                    </div>
                  </>
                ),
              },
              { heading: 'Input', number: true, cell: (price) => formatPrice(price.inputPerMillion) },
              { heading: 'Cached', number: true, cell: (price) => formatPrice(price.cachedInputPerMillion) },
              {
                heading: 'Into cache',
                number: true,
                cell: (price) => formatPrice(price.cacheWritePerMillion),
              },
              { heading: 'Output', number: true, cell: (price) => formatPrice(price.outputPerMillion) },
              {
                heading: 'From',
                cell: ({ validFrom }) =>
                  validFrom ? <Time at={validFrom} /> : <span className="quiet">Always</span>,
              },
            ]}
            menu={({ at }) => [
              { label: 'Edit', icon: 'edit', onClick: () => setEdited(at) },
              { label: 'Delete', icon: 'trash', danger: true, onClick: () => remove(at) },
            ]}
          />
        )}
      </Loaded>
      {edited !== null && (
        <PriceDialog teamId={teamId} all={all} at={edited} onClose={() => setEdited(null)} />
      )}
    </div>
  )
}

function formatPrice(amount: number | null): string {
  return amount === null ? 'as input' : formatMoney(amount)
}

const AMOUNTS = [
  ['inputPerMillion', 'Input', ''],
  ['cachedInputPerMillion', 'Input from a cache', 'Empty: as input.'],
  ['cacheWritePerMillion', 'Input into a cache', 'Empty: as input.'],
  ['outputPerMillion', 'Output', ''],
] as const

type Amount = (typeof AMOUNTS)[number][0]

type DialogProps = { teamId: string; all: Price[]; at: number; onClose: () => void }

function PriceDialog({ teamId, all, at, onClose }: DialogProps) {
  const known = all[at]
  const [provider, setProvider] = useState<string>(known?.provider ?? '')
  const [model, setModel] = useState(known?.model ?? '')
  const [validFrom, setValidFrom] = useState(known?.validFrom ?? '')
  const [amounts, setAmounts] = useState<Partial<Record<Amount, number | null>>>(known ?? {})
  const save = async () => {
    const price = {
      provider: provider || null,
      model,
      inputPerMillion: amounts.inputPerMillion!,
      cachedInputPerMillion: amounts.cachedInputPerMillion ?? null,
      cacheWritePerMillion: amounts.cacheWritePerMillion ?? null,
      outputPerMillion: amounts.outputPerMillion!,
      validFrom: validFrom || null,
    }
    await updatePrices(teamId, all.toSpliced(at, 1, price))
    notify('Saved: it counts for calls that begin from now on')
  }
  const own = `prices[${at}]`
  const problemOf = (error: unknown, key: string) =>
    problemsOf(error).find(({ path }) => path === `${own}.${key}` || (path === own && key === 'model'))
      ?.message
  return (
    <FormDialog
      open
      onClose={onClose}
      title={known ? `Edit the price of ${known.model}` : 'New price'}
      label="Save the price"
      onSubmit={save}
      fields={[own, `${own}.model`, `${own}.validFrom`, ...AMOUNTS.map(([key]) => `${own}.${key}`)]}
    >
      {(error) => (
        <>
          <Field
            label="Model"
            required
            help="Its name; with * at its end how the name begins, such as llama3*."
            error={problemOf(error, 'model')}
          >
            <TextInput value={model} onChange={setModel} required maxLength={200} className="code" />
          </Field>
          <Field label="Provider" help="By the type of the credential that it is called with.">
            <Select
              value={provider}
              onChange={setProvider}
              empty="Any provider"
              choices={Object.entries(MODEL_PROVIDERS).map(([value, label]) => ({ value, label }))}
            />
          </Field>
          <div className="pairs">
            {AMOUNTS.map(([key, label, help]) => (
              <Field
                key={key}
                label={`${label}, $ per million tokens`}
                help={help}
                required={help === ''}
                error={problemOf(error, key)}
              >
                <NumberInput
                  value={amounts[key] ?? undefined}
                  min={0}
                  required={help === ''}
                  onChange={(value) => setAmounts({ ...amounts, [key]: value ?? null })}
                />
              </Field>
            ))}
          </div>
          <Field
            label="Valid from"
            help={`In your zone, ${ZONE}. Empty: always.`}
            error={problemOf(error, 'validFrom')}
          >
            <DateInput value={validFrom} onChange={setValidFrom} />
          </Field>
        </>
      )}
    </FormDialog>
  )
}
